"""For the tests of applications: a real broker, and waiting for what must come.

    pytest_plugins = ["gantrymq.testing.plugin"]    # in conftest.py: the fixtures

broker      a name server and a broker of their own, as processes
waiting     wait_for, for threads and for asyncio
in_memory   an App without a broker
plugin      the same as fixtures of pytest, with a topic for each test
"""

from gantrymq.app.memory import Memory, in_memory
from gantrymq.testing.broker import BrokerNotStarted, running_broker
from gantrymq.testing.waiting import wait_for, wait_for_async

__all__ = ["BrokerNotStarted", "Memory", "in_memory", "running_broker", "wait_for", "wait_for_async"]
