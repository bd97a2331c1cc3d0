"""Consume queues: per topic and queue, where each message lies in the log."""
