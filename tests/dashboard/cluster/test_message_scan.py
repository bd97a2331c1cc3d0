"""Looking through queues newest first: nothing is left out, nothing comes twice, and the order is that of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from dashboard.cluster.message_scan import WINDOW_MESSAGES, Scan, Seen, TimeSpan, Window
from dashboard.cluster.message_values import MessageLine
from dashboard.cluster.values import QueueExtent
from tests.bounded import bounded


def line(queue: str, offset: int, at_ms: int) -> MessageLine:
    return MessageLine(f"{queue}.{offset}", queue, 0, offset, True, "", (), "", "", "", at_ms, 0)


def looked_through(times: Mapping[str, Sequence[int]], limit: int) -> tuple[list[MessageLine], int]:
    """All that match (every second message of each queue), and how many steps that took."""
    queues = {f"{name}.0": QueueExtent(name, 0, 0, len(stored), 0) for name, stored in times.items()}
    high = {key: queue.max_offset for key, queue in queues.items()}
    found: list[MessageLine] = []
    scanned = rounds = 0
    while any(high.values()):
        scan = Scan(dict.fromkeys(queues, 0), high, queues)
        windows = []
        for span in scan.windows():
            stored = times[span.broker_name]
            seen = [
                Seen(stored[at], at, at, line(span.broker_name, at, stored[at]) if at % 2 else None)
                for at in range(span.start, span.end)
            ]
            windows.append(Window(span, seen))
        scan.take(windows, limit)
        assert len(scan.lines) <= limit
        assert scan.scanned > 0, "every round comes further"
        found, scanned, rounds, high = found + scan.lines, scanned + scan.scanned, rounds + 1, scan.high
    assert scanned == sum(len(stored) for stored in times.values())
    return found, rounds


@bounded(40)
@given(
    st.lists(st.lists(st.integers(1, 50), max_size=400).map(sorted), min_size=1, max_size=3),
    st.sampled_from([1, 7, 64, 1000]),
)
def test_every_match_comes_once_and_newest_first(stored: list[list[int]], limit: int) -> None:
    times = {f"b{number}": queue for number, queue in enumerate(stored)}
    found, _ = looked_through(times, limit)
    assert sorted(item.place for item in found) == sorted(
        f"{name}.{at}" for name, queue in times.items() for at in range(1, len(queue), 2)
    )
    assert [item.stored_ms for item in found] == sorted((item.stored_ms for item in found), reverse=True)


def test_a_quiet_queue_does_not_hold_up_a_busy_one() -> None:
    _, rounds = looked_through({"busy": range(10_000, 10_000 + 4 * WINDOW_MESSAGES), "quiet": [1, 2, 3]}, 1000)
    assert rounds <= 5


def test_a_span_of_time_has_both_its_ends() -> None:
    span = TimeSpan(5, 7)
    assert [at for at in range(4, 9) if span.has(at)] == [5, 6, 7]
    assert TimeSpan().is_open and TimeSpan().has(0) and not span.is_open
