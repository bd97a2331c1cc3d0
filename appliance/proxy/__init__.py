"""The proxy: gRPC for RocketMQ 5 clients, in front of name servers and brokers, which it reaches over the wire only.

It keeps nothing that another proxy would need: what must last is in the brokers, or in the ids and handles that clients
send back.
"""
