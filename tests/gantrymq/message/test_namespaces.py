"""Names with and without their namespace, as Java's NamespaceUtil has them."""

from __future__ import annotations

import pytest

from gantrymq.message.model import MessageQueue
from gantrymq.message.namespaces import NO_NAMESPACE, Namespace

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
