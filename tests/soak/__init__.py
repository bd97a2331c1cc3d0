"""The SDK while brokers, name server, connections and members fail again and again.

`soak.py` runs producers, consumers and members, `faults.py` disturbs them, `retries.py` notes what the client sent
again, `records.py` judges what was consumed.
A usual run disturbs them once in each way; `--soak-seconds 600` goes on for ten minutes.
"""
