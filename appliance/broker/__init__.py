"""One broker: its state, its services, and the processors that answer requests."""
