"""Making dead letters as a consumer does: by giving messages back that failed too often."""

from __future__ import annotations

from dashboard.cluster.gateway import Gateway
from gantrymq.message.model import Message
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from gantrymq.remoting.codes import RequestCode

OUT_OF_STOCK = "shop.OutOfStock at orders.py:42"
TIMED_OUT = "TimeoutError at prices.py:7"


async def give_up(gateway: Gateway, topic: str, group: str, causes: list[str]) -> None:
    """A message of the topic for each cause, given up by the group for it; "" is a client that tells none."""
    admin = await gateway.calls.admin()
    (broker,) = (await gateway.calls.cluster()).brokers
    await admin.groups.create_at(broker.address, SubscriptionGroupConfig(group))
    for number, cause in enumerate(causes):
        sent = await gateway.messages.send(Message(topic, b"letter %d" % number, keys=f"key-{number}"))
        found = await gateway.messages.get(topic, broker.name, sent.queue.queue_id, sent.queue_offset)
        fields = {
            "offset": str(found.physical_offset), "group": group, "delayLevel": "-1", "unitMode": "false",
            "originMsgId": found.msg_id, "originTopic": topic,
        }  # fmt: skip
        if cause:
            fields |= {"consumeError": cause, "consumeErrorText": f"OutOfStock: none of {number} left"}
        await admin.calls.call(broker.address, RequestCode.CONSUMER_SEND_MSG_BACK, fields)


async def stored(gateway: Gateway, topic: str) -> int:
    return (await gateway.topics.get(topic)).stored
