"""The key index: from message keys to places in the log."""
