"""Conditions on what is inside a JSON body, as people write them in the search."""

from __future__ import annotations

import gzip
import json

import msgspec
import pytest

from dashboard.cluster.message_query import understand
from dashboard.messages.bodies.json_path import STEPS_MAX, read_path
from gantrymq.message.model import MessageExt

ORDER = {
    "order": 17, "customer": {"id": 7, "name": "Ada Lovelace"}, "paid": True, "note": None,
    "items": [{"sku": "a-1", "count": 2}, {"sku": "b 2", "count": 5}], "odd name": {"x.y": 1.5},
}  # fmt: skip


def message(body: bytes) -> MessageExt:
    return MessageExt("t", body, 0, {}, 0, 0, 0, 0, 0, 1, ("127.0.0.1", 1), 1, ("127.0.0.1", 1), 0, 0, 0, "broker-a")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("$.order=17", True), ("$.order=17.0", True), ("$.order=18", False), ("$.order!=18", True),
        ("$.order>16", True), ("$.order>=17", True), ("$.order<17", False), ("$.order<=17", True), ("$.order>x", False),
        ('$.customer.name="Ada Lovelace"', True), ("$.customer.name=Ada", False), ("$.customer.name>A", True),
        ("$.paid=true", True), ("$.paid=1", False), ("$.note=null", True), ("$.note", True), ("$.nothing", False),
        ("$.nothing!=3", False), ("$.items[1].sku=\"b 2\"", True), ("$.items[0].sku=b", False),
        ("$.items[9].sku", False),
        ("$.items[*].count>4", True), ("$.items[*].count>5", False), ("$.items[*].sku!=a-1", False),
        ("$.customer.*=7", True), ('$["odd name"]["x.y"]=1.5', True), ("$.items=3", False),
    ],
)  # fmt: skip
def test_a_condition_holds_for_what_the_path_leads_to(text: str, holds: bool) -> None:
    query = understand(text)
    assert not query.problem and len(query.json) == 1 and not query.words
    assert query.matches(message(json.dumps(ORDER).encode())) is holds


def test_packed_bodies_and_messagepack_are_looked_into_and_others_do_not_match() -> None:
    query = understand("$.customer.id=7")
    assert query.matches(message(gzip.compress(json.dumps(ORDER).encode())))
    assert query.matches(message(msgspec.msgpack.encode(ORDER)))
    for other in (b"", b"plain", b"[1, 2]", b"\xff\xfe", b'{"customer": ', b"7"):
        assert not query.matches(message(other))


def test_conditions_stand_beside_words_and_are_told() -> None:
    query = understand('tag:paid $.order>16 "two words"')
    assert (query.tags, query.words, [one.text for one in query.json]) == (("paid",), ("two words",), ["$.order>16"])
    assert "$.order>16" in query.conditions and query.indexed == "" and not query.is_empty


@pytest.mark.parametrize("path", ["$", "$.", "$x", "$.a[", "$.a[x]", "$..a", "$" + ".a" * (STEPS_MAX + 1)])
def test_what_is_no_path_is_a_word_as_before(path: str) -> None:
    assert read_path(path) is None
    query = understand(path)
    assert query.json == () and query.words == (path,)
