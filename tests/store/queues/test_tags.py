"""The third field of a unit: a tag's hash as Java counts it, or the time at which a message is due."""

from __future__ import annotations

import pytest

from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from store.base.delay import DelayLevels
from store.queues import tags
from store.queues.tags import TagsCodes
from store.queues.topic_slot import TopicSlot

TAG_A = 2598919  # "TagA".hashCode() in Java
STORED_MS = 1_700_000_000_000


@pytest.fixture
def codes() -> TagsCodes:
    return TagsCodes(DelayLevels("1s 5s"))


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (b"TAGS\x01TagA", TAG_A),
        (b"KEYS\x01k\x02TAGS\x01TagA\x02WAIT\x01true", TAG_A),
        (b"KEYS\x01k", 0),
        (b"", 0),
        (b"TAGS\x01", 0),
        (b"MYTAGS\x01other", 0),
        (b"TAGS\x01TagA\x02MYTAGS\x01other", TAG_A),
        ("TAGS\x01\u4e3b".encode(), 0x4E3B),
    ],
)
def test_the_code_is_javas_hash_of_the_tag(codes: TagsCodes, properties: bytes, code: int) -> None:
    for _ in range(2):  # also when it was seen before
        assert codes.code(TopicSlot("orders"), properties, STORED_MS) == code


@pytest.mark.parametrize(("level", "due_ms"), [(b"1", 1000), (b"2", 5000), (b"99", 5000)])
def test_a_delayed_message_is_due_its_level_after_it_was_stored(codes: TagsCodes, level: bytes, due_ms: int) -> None:
    properties = b"TAGS\x01TagA\x02DELAY\x01" + level
    assert codes.code(TopicSlot(SCHEDULE_TOPIC), properties, STORED_MS) == STORED_MS + due_ms
    assert codes.code(TopicSlot("orders"), properties, STORED_MS) == TAG_A, "anywhere else it is over"


def test_a_timed_message_is_due_when_it_says(codes: TagsCodes) -> None:
    assert codes.code(TopicSlot(TIMER_TOPIC), b"TIMER_OUT_MS\x011800000000001", STORED_MS) == 1_800_000_000_001


def test_tags_without_end_do_not_fill_the_memory(codes: TagsCodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags, "TAGS_CACHED_MAX", 10)
    slot = TopicSlot("orders")
    for number in range(100):
        codes.code(slot, b"TAGS\x01%d" % number, STORED_MS)
        assert len(codes.known) <= 10
    assert codes.code(slot, b"TAGS\x01TagA", STORED_MS) == TAG_A
