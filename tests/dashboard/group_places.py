"""A consumer group that has a place in a topic and no member."""

from __future__ import annotations

from dashboard.cluster.gateway import Gateway
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig


async def placed(gateway: Gateway, group: str, topic: str, offsets: dict[int, int]) -> None:
    """A group without members, with a place in the topic."""
    admin = await gateway.calls.admin()
    [broker] = (await gateway.calls.cluster()).brokers
    await admin.groups.create_at(broker.address, SubscriptionGroupConfig(group_name=group))
    for queue_id, offset in offsets.items():
        await admin.offsets.set_at(broker.address, group, topic, queue_id, offset)
