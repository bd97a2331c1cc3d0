"""Every kind of message, sent and read by our SDK and by Java's client in each direction, at both makes of broker.

`table.py` lists the kinds; `sending.py` and `reading.py` are Python's part, `java/Kinds*.java` Java's.
"""
