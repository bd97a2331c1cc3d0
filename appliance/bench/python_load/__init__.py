"""The load in Python: the latency load, and where there is no C compiler also what else of the loads it can put on.

`driver.py` starts `load.py` as a process of its own; `latency.py` is the open loop. `null_server.py` shows what this
generator could do at best.
"""
