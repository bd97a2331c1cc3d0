"""Looking through messages newest first, step by step, without I/O: which spans to read and what of them is final.

A queue can only be read upwards, so a window of each is read. What is younger than the frontier, the youngest of the
windows' oldest messages, is final: nothing that was not read yet can stand between. The rest is read again, with more
of the busy queues. The frontier's own queue is always done with its window, so every round comes further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dashboard.cluster.browse import Span
from dashboard.cluster.message_values import MessageLine
from dashboard.cluster.values import PartialFailure, QueueExtent
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt

WINDOW_MESSAGES = 128  # of one queue in one round
STEP_MESSAGES = 4096  # a step is over after so many, or after STEP_S; one round is always done
STEP_S = 0.5
STEP_LINES = 64


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Store times from `since_ms` to `until_ms`, both included; None is open."""

    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, at_ms: int) -> bool:
        return (self.since_ms is None or at_ms >= self.since_ms) and (self.until_ms is None or at_ms <= self.until_ms)

    @property
    def is_open(self) -> bool:
        return self.since_ms is None and self.until_ms is None


ANY_TIME = TimeSpan()


@dataclass(frozen=True, slots=True)
class Seen:
    """One message that was looked at; line is None when it does not match. Bodies are not kept."""

    at_ms: int
    queue_offset: int
    physical_offset: int
    line: MessageLine | None


@dataclass(frozen=True, slots=True)
class Window:
    """A span and what of it was looked at, upwards."""

    span: Span
    seen: Sequence[Seen]


@dataclass(frozen=True, slots=True)
class ScanStep:
    """One step: the lines that match, how many messages were looked at, the cursor to go on from (None: all done)."""

    lines: tuple[MessageLine, ...]
    scanned: int
    older: str | None
    reached_ms: int  # the store time down to which everything was looked at; 0 when nothing was
    took_ms: float
    failures: tuple[PartialFailure, ...] = ()


@dataclass(slots=True)
class Scan:
    """The places of all queues. low … high - 1 is what is still to be looked at."""

    low: dict[str, int]
    high: dict[str, int]
    queues: Mapping[str, QueueExtent]
    lines: list[MessageLine] = field(default_factory=list)
    scanned: int = 0
    reached_ms: int = 0

    def windows(self) -> list[Span]:
        """What the next round reads; nothing when all is done."""
        return [
            Span(queue.broker_name, queue.queue_id, max(self.low[key], high - WINDOW_MESSAGES), high, queue.min_offset)
            for key, high in self.high.items()
            if high > self.low[key] and (queue := self.queues[key])
        ]

    def take(self, windows: Iterable[Window], limit: int) -> None:
        """Keep what is final of a round, up to `limit` lines in all; the rest is for the next round."""
        windows = list(windows)
        open_ends = [window for window in windows if window.span.start > self.low[window.span.key] and window.seen]
        frontier = max((min(seen.at_ms for seen in window.seen) for window in open_ends), default=0)
        final: list[tuple[Seen, Span]] = []
        for window in windows:
            cut = max((seen.queue_offset + 1 for seen in window.seen if seen.at_ms < frontier), default=0)
            self.high[window.span.key] = max(window.span.start, cut)
            final += [(seen, window.span) for seen in window.seen if seen.queue_offset >= cut]
        final.sort(key=lambda item: (-item[0].at_ms, -item[0].physical_offset, item[1].key))
        for seen, span in final:
            if len(self.lines) >= limit:
                self.high[span.key] = max(self.high[span.key], seen.queue_offset + 1)
                continue
            self.scanned += 1
            self.reached_ms = seen.at_ms
            if seen.line is not None:
                self.lines.append(seen.line)

    @property
    def is_done(self) -> bool:
        return all(self.high[key] <= low for key, low in self.low.items())


def seen(message: MessageExt, matches: Callable[[MessageExt], bool]) -> Seen:
    """What is kept of a message that was looked at."""
    line = MessageLine.of(message) if matches(message) else None
    return Seen(message.store_timestamp, message.queue_offset, message.physical_offset, line)


def with_damage(found: list[Seen], damaged: Iterable[LostMessage], broker_name: str) -> list[Seen]:
    """What was looked at of a queue, with the damaged messages in their order: whatever is searched for, they match.

    Each has the time of the message before it, else of the one behind it; and where its record no longer says its place
    in the log, one behind that message's.
    """
    for lost in damaged:
        before = [each for each in found if each.queue_offset < lost.queue_offset]
        behind = found[len(before) : len(before) + 1]
        at_ms = next((each.at_ms for each in (*before[-1:], *behind)), 0)
        named = replace(lost, queue=lost.queue._replace(broker_name=broker_name))
        line = MessageLine.of_damaged(named, at_ms)
        place = lost.physical_offset
        if place < 0 and before:
            place = before[-1].physical_offset + 1
        found.insert(len(before), Seen(at_ms, lost.queue_offset, place, line))
    return found
