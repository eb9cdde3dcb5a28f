"""Match streams of events: `query.stream`."""
