"""Clients while a group of three loses its master: how long they come to no accepted send, and to no delivery.

python -m tests.interop.failover --rounds 5
"""
