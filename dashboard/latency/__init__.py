"""End-to-end latency: from sent to handled, for each topic and group, of what clients with tracing report."""
