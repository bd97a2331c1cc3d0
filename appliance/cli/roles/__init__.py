"""The commands that run one server each, and what they share: the event loop, signals, the log, the READY line."""
