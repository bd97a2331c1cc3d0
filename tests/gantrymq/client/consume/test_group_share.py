"""A member's share of a topic while the others come back to a broker that was started anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gantrymq.client.connection.session import MISSING_MAX_S, ClientSession
from gantrymq.client.consume.assignment import GroupShare
from gantrymq.client.consume.options import PushConsumerOptions
from gantrymq.message.model import MessageQueue

TOPIC = "jobs"
QUEUES = tuple(MessageQueue(TOPIC, "broker-a", number) for number in range(4))


class OneBroker:
    """What a share asks of a session: a route of one broker, how long that is back, and whom it lists."""

    def __init__(self) -> None:
        self.members = ["a", "b"]
        self.back_for_s = float("inf")
        self.client_id = "a"
        self.routes = SimpleNamespace(to_read=self._route, address_to_read=lambda name: ("broker:1", True))
        self.calls = SimpleNamespace(consumer_ids=self._consumer_ids)

    def meet_brokers(self) -> None:
        """It is known."""

    def is_just_back(self, address: str, within_s: float = 3.0) -> bool:
        return self.back_for_s < within_s

    async def _route(self, topic: str) -> Any:
        return SimpleNamespace(readable=QUEUES, addresses=["broker-a"])

    async def _consumer_ids(self, address: str, group: str) -> list[str]:
        return self.members


@pytest.mark.parametrize(("back_for_s", "then"), [(MISSING_MAX_S - 1, None), (MISSING_MAX_S + 1, list(QUEUES))])
async def test_a_member_that_a_new_broker_has_not_heard_of_keeps_its_queues_for_a_while(
    back_for_s: float, then: list[MessageQueue] | None
) -> None:
    broker = OneBroker()
    share = GroupShare(
        cast(ClientSession, broker), PushConsumerOptions(name_servers="127.0.0.1:1", group="g"), lambda address: None
    )
    assert await share(TOPIC) == [*QUEUES[:2]]
    broker.members, broker.back_for_s = ["a"], back_for_s
    assert await share(TOPIC) == then
    broker.members = ["a", "b"]
    assert await share(TOPIC) == [*QUEUES[:2]]


async def test_one_that_joined_meanwhile_gets_its_share_at_once() -> None:
    broker = OneBroker()
    share = GroupShare(
        cast(ClientSession, broker), PushConsumerOptions(name_servers="127.0.0.1:1", group="g"), lambda address: None
    )
    await share(TOPIC)
    broker.members, broker.back_for_s = ["a", "b", "c", "d"], 0.0
    assert await share(TOPIC) == [QUEUES[0]]
