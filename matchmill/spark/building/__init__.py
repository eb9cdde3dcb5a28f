"""Build a sharded engine: `driver.build`."""
