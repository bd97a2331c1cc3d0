"""Sending: producers, transactions, request and reply, the trace of what was sent and consumed."""
