"""Three brokers of one name beside three of Apache RocketMQ with DLedger: losses of the master, rates, CPU, memory.

python -m tests.bench.group
"""
