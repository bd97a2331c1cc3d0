"""A broker for FastStream (`pip install 'gantrymq[faststream]'`), in that project's own conventions.

    broker = GantryBroker("127.0.0.1:9876")
    app = FastStream(broker)

    @broker.subscriber("orders", group="billing")
    @broker.publisher("bills")
    async def bill(order: Order) -> Bill: ...

broker        GantryBroker, GantryRouter, and what they take
subscriber    a push consumer that calls the handlers
pulling       a pull consumer for a subscriber without handlers: get_one
publisher     what is sent, and by which producer
message       received messages as FastStream's
annotations   what handlers are given by the context: GantryMessage is one of them
testing       TestGantryBroker: without a broker
"""

from gantrymq.contrib.faststream.annotations import GantryBatchMessage, GantryMessage
from gantrymq.contrib.faststream.broker import GantryBroker, GantryRouter
from gantrymq.contrib.faststream.testing import TestGantryBroker

__all__ = ["GantryBatchMessage", "GantryBroker", "GantryMessage", "GantryRouter", "TestGantryBroker"]
