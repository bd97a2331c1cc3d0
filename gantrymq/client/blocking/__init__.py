"""The same clients for threads."""
