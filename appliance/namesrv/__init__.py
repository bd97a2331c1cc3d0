"""The name server: which brokers live, which topics they hold, and a small table of key-value settings."""
