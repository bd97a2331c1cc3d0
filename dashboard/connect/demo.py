"""One message from here, so that a first consumer has something to read."""

from __future__ import annotations

import contextlib

from dashboard.cluster.errors import TopicExists, TopicNotFound
from dashboard.cluster.gateway import Gateway
from gantrymq.client.results import SendResult
from gantrymq.message.model import Message

DEMO_TOPIC = "demo"
DEMO_QUEUES = 8


async def send_demo(gateway: Gateway, text: str) -> SendResult:
    """Send it; the topic is made if it is not there. Raises GatewayError."""
    message = Message(DEMO_TOPIC, text.encode(), tags="demo")
    try:
        return await gateway.messages.send(message)
    except TopicNotFound:
        with contextlib.suppress(TopicExists):  # another one was quicker
            await gateway.topics.create(DEMO_TOPIC, queues=DEMO_QUEUES)
    return await gateway.messages.send(message)
