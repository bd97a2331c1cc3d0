"""The transactional outbox: messages are rows first, written in the transaction of the data they tell of.

writing     put_in_outbox
choosing    which messages may go now, and which process may send them
relay       sends them, again after failures, and removes what is old
"""
