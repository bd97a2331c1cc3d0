"""A consumer group that has a place in a topic and no member."""

from __future__ import annotations

from dashboard.cluster.gateway import Gateway
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig
from tests.harness import ServingCluster


async def placed(gateway: Gateway, cluster: ServingCluster, group: str, topic: str, offsets: dict[int, int]) -> None:
    """A group without members, with a place in the topic."""
    admin = await gateway.calls.admin()
    await admin.groups.create_at(cluster.broker_address, SubscriptionGroupConfig(group_name=group))
    for queue_id, offset in offsets.items():
        await admin.offsets.set_at(cluster.broker_address, group, topic, queue_id, offset)
