"""The service: subscribe, publish and be told of matches over HTTP."""
