"""Who administers a broker or a name server: a line for each request that changes something."""
