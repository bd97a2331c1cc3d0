"""Numbers as people read them; bodies, cursors and places without a cluster."""

from __future__ import annotations

import pytest

from dashboard.cluster import browse, units
from dashboard.cluster.message_values import read_place
from dashboard.cluster.values import QueueExtent, perm_text, topic_kind
from dashboard.messages.bodies.body_view import hex_dump, preview, view_body
from gantrymq.message import sysflag
from gantrymq.message.model import MessageExt


def message(body: bytes = b"", *, queue: int = 0, offset: int = 0, stored: int = 0, flag: int = 0) -> MessageExt:
    host = ("127.0.0.1", 1)
    return MessageExt("t", body, 0, {}, queue, offset, 0, 0, flag, 0, host, stored, host, 0, 0, 0, "broker-a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.count(1234567), "1 234 567"),
        (units.count(0), "0"),
        (units.count(None), "—"),
        (units.rate(0), "0"),
        (units.rate(0.01), "<0.1"),
        (units.rate(3.14), "3.1"),
        (units.rate(4.0), "4"),
        (units.rate(1240.4), "1 240"),
        (units.rate(None), "—"),
        (units.size(0), "0 B"),
        (units.size(1024), "1.0 KiB"),
        (units.size(3 * 1024**3), "3.0 GiB"),
        (units.size(1024**2 - 1), "1.0 MiB"),
        (units.percent(0.333), "33 %"),
        (units.percent(-0.333), "-33 %"),
        (units.percent(-0.0333), "-3.3 %"),
        (units.percent(12345.678), "1 234 568 %"),
        (units.percent(None), "—"),
        (units.duration(59), "59 s"),
        (units.duration(3600 * 3 + 60 * 12), "3 h 12 min"),
        (units.duration(86400 * 5), "5 d"),
        (units.milliseconds(12), "12 ms"),
        (units.moment(0), "—"),
        (units.moment(1795228737117), "2026-11-21 02:38:57.117"),
        (units.ago(95.0, 100.0), "5 s ago"),
        (units.ago(99.9, 100.0), "now"),
    ],
)
def test_units(text: str, expected: str) -> None:
    assert text.replace("\u202f", " ") == expected


def test_a_body_takes_the_form_that_fits() -> None:
    assert view_body(message(b'{"a": [1]}')).form == "json"
    assert view_body(message(b"{not json")).form == "text"
    assert view_body(message(b"\xff\x00\x01")).form == "hex"
    assert view_body(message(b"plain"), "json").form == "text"
    assert view_body(message(b"[" * 100_000)).form == "text"
    assert view_body(message(b"x" * 300_000)).cut
    assert view_body(message(b"x", flag=sysflag.COMPRESSED)).note


def test_a_preview_is_one_bounded_line() -> None:
    assert preview(message(b"a\n\tb")) == "a b"
    assert len(preview(message("ü".encode() * 5000))) <= 121
    assert preview(message(b"\x00\x01")) == "00 01"
    assert hex_dump(b"AB\x00").split() == ["00000000", "41", "42", "00", "AB·"]


def test_browsing_merges_queues_by_store_time_and_goes_on_where_it_stopped() -> None:
    queues = [
        QueueExtent("broker-a", 0, 0, 10, 0),
        QueueExtent("broker-a", 1, 5, 8, 0),
        QueueExtent("broker-a", 2, 3, 3, 0),
    ]
    seen: list[tuple[int, int]] = []
    before: dict[str, int] = {}
    for _ in range(10):
        spans = browse.spans(queues, 4, before, None)
        reads = [
            browse.Read(
                span,
                [
                    message(queue=span.queue_id, offset=o, stored=o * 10 + span.queue_id)
                    for o in range(span.start, span.end)
                ],
            )
            for span in spans
        ]
        shown, reached = browse.merge(reads, 4)
        cursor = browse.next_cursor(queues, before, reached)
        seen += [(item.queue_id, item.queue_offset) for item in shown]
        if cursor is None:
            break
        before = browse.read_cursor(browse.write_cursor(cursor))
    expected = [(0, o) for o in range(10)] + [(1, o) for o in range(5, 8)]
    assert sorted(seen) == expected, "each once"
    assert seen == sorted(seen, key=lambda place: -(place[1] * 10 + place[0]))


def test_a_cursor_or_place_that_was_edited_is_harmless() -> None:
    assert browse.read_cursor("a.0:5,b.1:x,:7,c.2:" + "9" * 30 + ",") == {"a.0": 5}
    assert browse.spans([QueueExtent("a", 0, 0, 5, 0)], 3, {"a.0": 99}, None)[0].end == 5
    assert read_place("broker.with.dots.3.17") == ("broker.with.dots", 3, 17)
    for wrong in ("", "a", "a.b.c", ".1.2", "a.1." + "9" * 30):
        assert read_place(wrong) is None


def test_kinds_and_permissions_in_words() -> None:
    assert [
        topic_kind(name, frozenset({"broker-a"})) for name in ("x", "%RETRY%g", "%DLQ%g", "TBW102", "broker-a")
    ] == ["normal", "retry", "dead letter", "system", "system"]
    assert [perm_text(perm) for perm in (6, 7, 4, 2, 0)] == [
        "read, write", "read, write", "read only", "write only", "none",
    ]  # fmt: skip
