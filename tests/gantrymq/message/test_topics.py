"""Names."""

from __future__ import annotations

import pytest

from gantrymq.errors import MessageRejected
from gantrymq.message import topics


@pytest.mark.parametrize("name", ["TopicTest", "%RETRY%group", "ns%a-b_c|d", "x" * 127])
def test_good_topics_pass(name: str) -> None:
    topics.check_topic(name)


@pytest.mark.parametrize("name", ["", "  ", "with space", "a/b", "a\n", "é", "x" * 128])
def test_bad_topics_are_rejected(name: str) -> None:
    with pytest.raises(MessageRejected):
        topics.check_topic(name)


@pytest.mark.parametrize("name", ["", "a.b", "x" * 256])
def test_bad_groups_are_rejected(name: str) -> None:
    with pytest.raises(MessageRejected):
        topics.check_group(name)


def test_rocketmqs_own_topics_are_known() -> None:
    assert topics.is_system_topic("TBW102")
    assert topics.is_system_topic("rmq_sys_anything")
    assert not topics.is_system_topic("Orders")
    assert not topics.may_clients_send_to("SCHEDULE_TOPIC_XXXX")
    assert topics.retry_topic("g") == "%RETRY%g"
    assert topics.dlq_topic("g") == "%DLQ%g"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("orders", "normal"), ("%RETRY%orders", "retry"), ("%DLQ%orders", "dead letter"), ("TBW102", "system"),
        ("rmq_sys_wheel_timer", "system"), ("broker-a", "system"),
    ],
)  # fmt: skip
def test_a_topics_kind_is_in_its_name_but_for_those_of_brokers(name: str, kind: str) -> None:
    assert topics.topic_kind(name, {"broker-a"}) == kind
