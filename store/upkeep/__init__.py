"""What keeps a running store healthy: flushing, retention, disk space."""
