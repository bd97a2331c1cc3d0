"""The benchmark: GantryMQ's broker and Apache RocketMQ under the same load, in one run.

`peer.py` starts a name server and a broker of either make with the same properties, `setups.py` says which. The load is
`generator/`, a C program, and `latency.py`, an open loop; `scenarios.py` lists the loads; `run.py`
alternates the peers, takes medians and checks that acknowledged messages are stored; `report.py` prints the results. It
uses only the wire format of the project.
"""
