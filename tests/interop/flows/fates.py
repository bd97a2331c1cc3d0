"""What becomes of a transaction, by its message's number; several test modules and the Java program agree on it."""

from __future__ import annotations

COUNT = 50
QUEUES = 4
COMMITTED, ROLLED_BACK, LATER, NEVER, THROWS = range(5)  # a message's fate is its number modulo 5
SEEN = (COMMITTED, LATER, THROWS)
