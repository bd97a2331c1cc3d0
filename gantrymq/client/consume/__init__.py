"""Consuming: push and pull consumers, which queues they hold, and how far they have come."""
