"""Names. Names with and without their namespace, as Java's NamespaceUtil has them."""

from __future__ import annotations

import pytest

from gantrymq.errors import MessageRejected
from gantrymq.message import topics
from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace


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


SHOP = Namespace("shop", outside=["traces"])


@pytest.mark.parametrize(
    ("plain", "whole"),
    [
        ("orders", "shop%orders"),
        ("%RETRY%readers", "%RETRY%shop%readers"),
        ("%DLQ%readers", "%DLQ%shop%readers"),
        ("other%orders", "shop%other%orders"),
    ],
)
def test_a_name_is_wrapped_once_and_unwrapped_to_what_it_was(plain: str, whole: str) -> None:
    assert (SHOP.wrap(plain), SHOP.wrap(whole), SHOP.unwrap(whole)) == (whole, whole, plain)
    assert NO_NAMESPACE.wrap(plain) == NO_NAMESPACE.unwrap(plain) == plain


@pytest.mark.parametrize("name", ["TBW102", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_x", "CID_RMQ_SYS_TRANS", "traces", ""])
def test_the_systems_own_names_belong_to_no_namespace(name: str) -> None:
    assert SHOP.wrap(name) == name


def test_names_of_other_namespaces_are_left_alone_when_they_are_read() -> None:
    assert SHOP.unwrap("other%orders") == "other%orders"
    assert SHOP.unwrap("%DLQ%other%readers") == "%DLQ%other%readers"


def test_queues_are_translated_with_their_topics() -> None:
    plain = MessageQueue("orders", "b", 3)
    whole = MessageQueue("shop%orders", "b", 3)
    assert (SHOP.wrap_queue(plain), SHOP.unwrap_queue(whole)) == (whole, plain)
    assert NO_NAMESPACE.wrap_queue(plain) is NO_NAMESPACE.unwrap_queue(plain) is plain
