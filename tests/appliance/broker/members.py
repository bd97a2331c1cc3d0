"""Members of groups on recording connections, and a clock that is set by hand."""

from __future__ import annotations

from typing import Any

from appliance.broker.groups.consumer_groups import ConsumerManager
from gantrymq.remoting.bodies import ConsumerData, SubscriptionData
from tests.appliance.broker.recording import RecordingConnection


def member(port: int = 1000) -> Any:
    return RecordingConnection(port)


def consumer(group: str = "g", *topics: str, version: int = 1) -> ConsumerData:
    return ConsumerData(
        group, subscription_data_set=[SubscriptionData(topic, sub_version=version) for topic in topics or ("t",)]
    )


def join(
    consumers: ConsumerManager, connection: Any, client: str, data: ConsumerData | None = None, **more: Any
) -> None:
    consumers.register(data or consumer(), connection, client, "JAVA", 401, **more)
