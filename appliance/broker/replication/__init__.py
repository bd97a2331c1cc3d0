"""Replication: a master that feeds its log to slaves, a slave that copies it, and what both tell of it."""
