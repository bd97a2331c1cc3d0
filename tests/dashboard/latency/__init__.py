"""End-to-end latency."""
