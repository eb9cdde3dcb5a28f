"""Match events with an engine, by workers or by the driver."""
