"""Is it fine: metrics of brokers and processes, checks, problems, and the status board."""
