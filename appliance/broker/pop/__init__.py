"""POP: messages are leased one by one to any member of a group, as RocketMQ 5 does.

`handlers.py` answers the requests; `leases.py` and `lease_book.py` know what is out, without I/O; `taking.py` hands
out; `redelivery.py` stores again what was not acknowledged in time; `hold.py` lets requests wait for messages.
"""
