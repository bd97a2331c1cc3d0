"""The benchmark room: our broker and Apache RocketMQ under one load, in one run.

`peer.py` starts a namesrv and a broker of either kind with the same properties; `load.py` is the load, a process of its
own; `scenarios.py` says which loads there are; `run.py` alternates the peers, takes medians and checks that what was
acknowledged is stored; `report.py` prints. Nothing else of the project is needed here but the wire format.
"""
