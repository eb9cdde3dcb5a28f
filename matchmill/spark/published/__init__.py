"""The folder of a sharded engine: its versions, and how workers open them."""
