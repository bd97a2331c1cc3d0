"""consume, and relay_outbox."""
