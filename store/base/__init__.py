"""Values, settings, counters and errors that every other room of the store uses."""
