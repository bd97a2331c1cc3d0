"""Arbitrary delay: messages that wait for a time of their own, RocketMQ 5's timer with our own files.

- store/base/timer.py: what waits; the store puts it into the timer's topic, an ordinary topic of the commit log
- service.py: reads that topic, remembers when what is due, owns the rest
- backlog.py, slots.py: what is due later, in files by hour and by minute, so that memory holds the next minute only
- due_table.py: what is due soon, in memory
- deliverer.py, delivery.py: what is due now, back into its topic
- recalls.py: what its sender has recalled, which is not delivered
- progress.py: how far all that has come, for a restart
- rolling.py: stores pending messages again before their commit-log file goes
"""
