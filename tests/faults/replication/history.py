"""What producers were told, against what the logs hold afterwards: values in, findings out. No I/O.

A run records every send with its answer (recorder.py), reads the logs of all members byte by byte (logs.py), and asks
`check`. Of each send the answer decides what must be so:

    ACKNOWLEDGED    in the log that counts, once, at the queue offset that was answered
    REFUSED         nowhere in that log: the broker said so before it appended
    UNKNOWN         there or not, once at most

What a consumer was given has to be in that log, where it was given. Two members that acknowledge in one epoch, or two
messages at one queue offset, are findings although both lie in a log.
"""

from __future__ import annotations

import enum
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Answer(enum.Enum):
    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class QueueKey(NamedTuple):
    topic: str
    queue_id: int


@dataclass(frozen=True, slots=True)
class Send:
    """One send of a sender's, which waits for each answer. body: another one each time; number: of this sender.

    Where it was acknowledged: by which member, in which queue at which offset, at which place in that member's log.
    """

    sender: str
    number: int
    body: bytes
    answer: Answer
    member: str = ""
    queue: QueueKey | None = None
    queue_offset: int = -1
    physical_offset: int = -1


class Delivery(NamedTuple):
    """One message that a consumer was given."""

    queue: QueueKey
    queue_offset: int
    body: bytes


class Stored(NamedTuple):
    """One record of a log."""

    physical_offset: int
    queue: QueueKey
    queue_offset: int
    body: bytes


class EpochRow(NamedTuple):
    number: int
    start: int
    id: str


@dataclass(frozen=True, slots=True)
class Log:
    """One member's log: its bytes from `begin` on without the empty rest, what is stored in them, and its epochs."""

    member: str
    begin: int
    data: bytes
    stored: Sequence[Stored]
    epochs: Sequence[EpochRow]

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    def epoch_at(self, physical_offset: int) -> EpochRow | None:
        """The epoch in which that place was written; None before the first."""
        return next((row for row in reversed(self.epochs) if row.start <= physical_offset), None)


class Finding(NamedTuple):
    """What must not be. kind: for tests; text: for people."""

    kind: str
    text: str


def check(sends: Sequence[Send], logs: Sequence[Log], counts: str, delivered: Sequence[Delivery] = ()) -> list[Finding]:
    """All that is wrong, when the log of the member `counts` is what consumers get from now on."""
    log = next(log for log in logs if log.member == counts)
    return [
        *_lost(sends, logs, log),
        *_stored_though_refused(sends, log),
        *_stored_twice(sends, log),
        *_moved(sends, log),
        *_queue_offsets_reused(sends, log),
        *_out_of_order(sends, log),
        *_two_masters(sends, logs),
        *_delivered_though_gone(delivered, log),
        *(finding for one, other in itertools.combinations(logs, 2) for finding in _unequal(one, other)),
    ]


def joint(one: Log, other: Log) -> int | None:
    """Up to where both must be one log: by the newest epoch that both have. None: they have none in common."""
    common = [row for row in one.epochs if row in other.epochs]
    if not common:
        return None
    newest = common[-1]
    ends = [next((row.start for row in log.epochs if row.number > newest.number), log.end) for log in (one, other)]
    return min(*ends, one.end, other.end)


# -- of sends ---------------------------------------------------------------------------------------------------------


def _lost(sends: Sequence[Send], logs: Sequence[Log], log: Log) -> Iterator[Finding]:
    held = {stored.body for stored in log.stored}
    acknowledged = [send for send in sends if send.answer is Answer.ACKNOWLEDGED]
    lost = [send for send in acknowledged if send.body not in held]
    if lost:
        others = {other.member for other in logs if {stored.body for stored in other.stored} & {lost[0].body}}
        where = f"; the first is still at {', '.join(sorted(others))}" if others else ""
        yield Finding(
            "lost", f"{len(lost)} of {len(acknowledged)} acknowledged are not at {log.member}: {_name(lost[0])}{where}"
        )


def _stored_though_refused(sends: Sequence[Send], log: Log) -> Iterator[Finding]:
    held = {stored.body for stored in log.stored}
    found = [send for send in sends if send.answer is Answer.REFUSED and send.body in held]
    if found:
        yield Finding("refused_but_stored", f"{len(found)} refused are stored: {_name(found[0])}")


def _stored_twice(sends: Sequence[Send], log: Log) -> Iterator[Finding]:
    """Each body was sent once: nothing explains a second record."""
    times = Counter(stored.body for stored in log.stored)
    found = [send for send in sends if times[send.body] > 1]
    if found:
        yield Finding("stored_twice", f"{len(found)} are stored more than once: {_name(found[0])}")


def _moved(sends: Sequence[Send], log: Log) -> Iterator[Finding]:
    places = {stored.body: (stored.queue, stored.queue_offset) for stored in log.stored}
    found = [
        send
        for send in sends
        if send.answer is Answer.ACKNOWLEDGED
        and send.queue is not None
        and places.get(send.body, (send.queue, send.queue_offset)) != (send.queue, send.queue_offset)
    ]
    if found:
        yield Finding("moved", f"{len(found)} are at another queue offset than was answered: {_name(found[0])}")


def _queue_offsets_reused(sends: Sequence[Send], log: Log) -> Iterator[Finding]:
    """A consumer that has read the one at that place never sees the other."""
    bodies: defaultdict[tuple[QueueKey, int], set[bytes]] = defaultdict(set)
    for send in sends:
        if send.answer is Answer.ACKNOWLEDGED and send.queue is not None:
            bodies[send.queue, send.queue_offset].add(send.body)
    for stored in log.stored:
        if (stored.queue, stored.queue_offset) in bodies:
            bodies[stored.queue, stored.queue_offset].add(stored.body)
    found = sorted(place for place, there in bodies.items() if len(there) > 1)
    if found:
        queue, offset = found[0]
        yield Finding(
            "queue_offset_reused",
            f"{len(found)} queue offsets had two messages: {queue.topic}/{queue.queue_id} {offset}",
        )


def _out_of_order(sends: Sequence[Send], log: Log) -> Iterator[Finding]:
    """What one sender sent one after the other stands in a queue in that order."""
    by_body = {send.body: send for send in sends if send.answer is Answer.ACKNOWLEDGED}
    last: dict[tuple[QueueKey, str], Send] = {}
    for stored in log.stored:
        send = by_body.get(stored.body)
        if send is None:
            continue
        before = last.get((stored.queue, send.sender))
        if before is not None and before.number > send.number:
            yield Finding("order", f"{_name(before)} stands before {_name(send)}")
            return
        last[stored.queue, send.sender] = send


def _two_masters(sends: Sequence[Send], logs: Sequence[Log]) -> Iterator[Finding]:
    """Who acknowledged in which epoch, where the member's own log still shows it; and one place given to two."""
    by_member = {log.member: log for log in logs}
    masters: defaultdict[int, set[str]] = defaultdict(set)
    placed: dict[int, Send] = {}
    for send in sends:
        if send.answer is not Answer.ACKNOWLEDGED or send.physical_offset < 0:
            continue
        other = placed.setdefault(send.physical_offset, send)
        if other.body != send.body:
            text = f"{_name(other)} and {_name(send)} were both acknowledged at byte {send.physical_offset}"
            yield Finding("two_masters", text)
            return
        log = by_member.get(send.member)
        row = log.epoch_at(send.physical_offset) if log is not None else None
        if log is not None and row is not None:
            begin = send.physical_offset - log.begin
            if send.body in log.data[begin : begin + _NEAR]:
                masters[row.number].add(send.member)
    for number, members in sorted(masters.items()):
        if len(members) > 1:
            yield Finding("two_masters", f"epoch {number} was acknowledged in by {', '.join(sorted(members))}")


def _delivered_though_gone(delivered: Sequence[Delivery], log: Log) -> Iterator[Finding]:
    """A consumer that is ahead of the log skips what comes at the same queue offsets."""
    held = {(stored.queue, stored.queue_offset, stored.body) for stored in log.stored}
    gone = [each for each in delivered if tuple(each) not in held]
    if gone:
        place = f"{gone[0].queue.topic}/{gone[0].queue.queue_id} {gone[0].queue_offset}"
        yield Finding(
            "delivered_but_gone",
            f"{len(gone)} of {len(delivered)} that were delivered are not in the log of {log.member}: {place}",
        )


def out_of_turn(delivered: Sequence[Delivery]) -> list[Finding]:
    """What an ordered consumer was given before an earlier message that it had not been given."""
    next_of: defaultdict[QueueKey, int] = defaultdict(int)
    for each in delivered:
        if each.queue_offset > next_of[each.queue]:
            text = f"{each.queue.topic}/{each.queue.queue_id}: {each.queue_offset} before {next_of[each.queue]}"
            return [Finding("delivered_out_of_turn", text)]
        next_of[each.queue] = max(next_of[each.queue], each.queue_offset + 1)
    return []


def left_out(delivered: Sequence[Delivery], log: Log, topic: str) -> list[Finding]:
    """What a consumer of the topic was never given, once it had time enough."""
    given = set(delivered)
    stored = sorted(Delivery(*each[1:]) for each in log.stored if each.queue.topic == topic)  # all but its place
    missing = [each for each in stored if each not in given]
    if not missing:
        return []
    (queue, offset, _body), last = missing[0], missing[-1].queue_offset
    text = f"{len(missing)} of {len(stored)} were never delivered: {queue.topic}/{queue.queue_id} {offset} to {last}"
    return [Finding("never_delivered", text)]


_NEAR = 1 << 16  # a record of these tests is far smaller


def _name(send: Send) -> str:
    return f"{send.sender} {send.number} ({send.member or 'no member'})"


# -- of logs ----------------------------------------------------------------------------------------------------------


def _unequal(one: Log, other: Log) -> Iterator[Finding]:
    """Byte by byte, up to the joint."""
    end = joint(one, other)
    if end is None:
        yield Finding("no_joint", f"{one.member} and {other.member} have no epoch in common")
        return
    begin = max(one.begin, other.begin)
    mine, theirs = one.data[begin - one.begin : end - one.begin], other.data[begin - other.begin : end - other.begin]
    if mine != theirs:
        at = begin + next(at for at in range(len(mine)) if mine[at] != theirs[at])
        yield Finding("unequal", f"{one.member} and {other.member} differ at byte {at}, both are one up to {end}")
