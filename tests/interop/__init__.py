"""Official clients in their own languages, as they are published, against our processes.

`clients.py` builds and runs the programs in java/ and javascript/; the tests read what they say. With the variable
GANTRY_INTEROP_PEER=apache the same tests run against Apache RocketMQ itself, which shows that the tests are right.
"""
