"""Reports of senders and of groups meet by the message's id, in either order; what can't be measured is counted."""

from __future__ import annotations

import pytest

from dashboard.latency import book
from dashboard.latency.book import LatencyBook
from gantrymq.client.produce.trace_records import TracedMessageType, TraceKind, TraceRecord

NOW = 1_700_000_000.0


def sent(msg_id: str, at_ms: int, *, topic: str = "orders", kind: int = TracedMessageType.NORMAL) -> TraceRecord:
    return TraceRecord(kind=TraceKind.PUB, msg_id=msg_id, time_ms=at_ms, topic=topic, group="shop", message_type=kind)


def handled(msg_id: str, at_ms: int, *, group: str = "mail", is_success: bool = True) -> TraceRecord:
    return TraceRecord(kind=TraceKind.SUB_AFTER, msg_id=msg_id, time_ms=at_ms, group=group, is_success=is_success)


def figures(kept: LatencyBook) -> dict[tuple[str, str], tuple[int, int | None, int]]:
    return {pair: (one.histogram.total, one.histogram.percentile(1), one.unmeasured) for pair, one in kept.finish()}


@pytest.mark.parametrize("order", [1, -1])
def test_the_time_from_sent_to_handled_in_either_order_of_the_reports(order: int) -> None:
    kept = LatencyBook()
    for record in [sent("a", 1000), handled("a", 1040)][::order]:
        kept.take([record], NOW)
    assert figures(kept) == {("orders", "mail"): (1, 40, 0)}
    assert figures(kept) == {}, "handed out once"


def test_each_group_has_its_own_and_a_failed_try_only_makes_it_longer() -> None:
    kept = LatencyBook()
    kept.take(
        [sent("a", 1000), handled("a", 1010, is_success=False), handled("a", 4000), handled("a", 1001, group="log")],
        NOW,
    )
    assert figures(kept) == {("orders", "mail"): (1, 3000, 0), ("orders", "log"): (1, 1, 0)}


def test_a_wait_that_is_meant_is_not_measured_and_a_transaction_is_from_its_half_message() -> None:
    kept = LatencyBook()
    kept.take([sent("late", 0, kind=TracedMessageType.DELAY), handled("late", 60_000)], NOW)
    kept.take([sent("half", 0, kind=TracedMessageType.TRANSACTION_HALF), handled("half", 90)], NOW)
    assert figures(kept) == {("orders", "mail"): (1, 100, 0)}


def test_a_clock_ahead_and_a_sender_without_traces_are_counted_as_not_measured() -> None:
    kept = LatencyBook()
    kept.take([sent("a", 1000), handled("a", 900), handled("unknown", 1)], NOW)
    assert figures(kept) == {("orders", "mail"): (0, None, 1)}
    kept.take([], NOW + book.WAIT_S)
    kept.skip(7)
    assert figures(kept) == {("", "mail"): (0, None, 1), ("", ""): (0, None, 7)}


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("SENT_MAX", 10), ("WAITING_MAX", 10), ("PAIRS_SEEN_MAX", 5), ("PAIRS_KEPT", 2)):
        monkeypatch.setattr(book, name, most)
    kept = LatencyBook()
    kept.take((handled(f"early-{number}", 1, group=f"g{number}") for number in range(30)), NOW)
    assert len(kept.finish()) == 2
    kept.take((sent(str(number), 0) for number in range(30)), NOW)
    kept.take((handled(str(number), 5) for number in range(30)), NOW)
    assert figures(kept)["orders", "mail"][0] == 10, "the newest ten senders were known"
