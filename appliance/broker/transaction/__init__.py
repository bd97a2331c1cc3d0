"""Transactional messages: prepared, then committed or rolled back by their producer, which is asked if it forgets.

A prepared ("half") message waits in RMQ_SYS_TRANS_HALF_TOPIC, where no consumer looks. Its end is an op message in
RMQ_SYS_TRANS_OP_HALF_TOPIC whose body is the half message's queue offset; a commit stores the message in its real topic
before that. Both queues and the two offsets of group CID_RMQ_SYS_TRANS are RocketMQ's, so that a folder may change
hands in the middle of a transaction.

    half.py     the five kinds of record, as values
    ended.py    which half messages have ended: what the op queue says, in memory
    service.py  prepare, commit, roll back
    check.py    the rounds in which producers are asked
"""
