"""What members wrote down, a line each, and what it proves: nothing lost, order kept, every repeat explained.

M stream number topic queue offset reader     a message was consumed
A topic queue reader time                     a reader begins with a queue

All members of a group append to one file, so its lines are in the order of time (time.monotonic, which all processes
share). The numbers of a stream count from 0, and one is sent when those before were acknowledged.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

Sent = tuple[str, int]  # stream and number
Place = tuple[str, str, str]  # topic, queue, offset
Reading = tuple[float, str]  # since when, by whom
NEVER_ASSIGNED: Reading = (0.0, "")


class Ledger:
    """Appends lines to a group's file. A line is one write: it is there whole, or not at all, after SIGKILL."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._reader = os.getpid()

    def consumed(self, body: str, topic: str, queue_id: int, offset: int) -> None:
        os.write(self._file, f"M {body} {topic} {queue_id} {offset} {self._reader}\n".encode())

    def assigned(self, topic: str, queue_id: int, at: float) -> None:
        os.write(self._file, f"A {topic} {queue_id} {self._reader} {at:.6f}\n".encode())

    def close(self) -> None:
        os.close(self._file)


@dataclass
class Verdict:
    """stored_twice: the answer to a send was missing, and it was sent again. handed_over: its queue got another
    reader, or was read anew, before the offset behind it was written."""

    messages: int = 0
    stored_twice: int = 0
    handed_over: int = 0
    lost: list[Sent] = field(default_factory=list)
    out_of_order: list[Sent] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)  # lines of repeats


def judge(
    lines: Iterable[str], acknowledged: Mapping[str, int], sent_again: Container[Sent], *, is_ordered: bool
) -> Verdict:
    """acknowledged: so many of each stream. sent_again: what may be stored twice, because the first answer was missing.

    A reading is a queue's from one assignment on. It gives no place twice; another one may give it again: that goes on
    from the offset written last, and one that loses its queue, or its lock, still finishes what it holds.
    """
    verdict = Verdict()
    seen: defaultdict[str, dict[int, dict[Place, Reading]]] = defaultdict(dict)
    last: dict[str, int] = {}
    readings: dict[tuple[str, str, str], Reading] = {}
    for line in lines:
        kind, *fields = line.split()
        if kind == "A":
            topic, queue, reader, at = fields
            readings[topic, queue, reader] = float(at), reader
            continue
        stream, text, topic, queue, offset, reader = fields
        number, reading = int(text), readings.get((topic, queue, reader), NEVER_ASSIGNED)
        places = seen[stream].setdefault(number, {})
        before = places.get((topic, queue, offset))
        if not places:
            if is_ordered and number < last.get(stream, -1):
                verdict.out_of_order.append((stream, number))
            last[stream] = max(number, last.get(stream, -1))
        elif before is None and (stream, number) in sent_again:
            verdict.stored_twice += 1
        elif before not in (None, reading):
            verdict.handed_over += 1
        else:
            verdict.unexplained.append(line.strip())
        places[topic, queue, offset] = reading
    verdict.messages = sum(map(len, seen.values()))
    verdict.lost = [
        (stream, number)
        for stream, count in acknowledged.items()
        for number in range(count)
        if number not in seen[stream]
    ]
    return verdict


class Marks:
    """A set of numbers of streams, in a byte for each number: an hour's run must not look like a leak."""

    def __init__(self) -> None:
        self._marked: defaultdict[str, bytearray] = defaultdict(bytearray)

    def add(self, sent: Sent) -> None:
        stream, number = sent
        marked = self._marked[stream]
        marked.extend(bytes(max(number + 1 - len(marked), 0)))
        marked[number] = 1

    def __contains__(self, sent: object) -> bool:
        assert isinstance(sent, tuple)
        stream, number = sent
        return any(self._marked[stream][number : number + 1])


class Progress:
    """How far a group is, read from its file while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.readers: set[str] = set()  # that began with a queue
        self._position = 0
        self._seen = Marks()
        self._missing_from: defaultdict[str, int] = defaultdict(int)

    def has(self, acknowledged: Mapping[str, int]) -> bool:
        """Whether the group consumed the first so many numbers of each stream."""
        self.read()
        for stream, count in acknowledged.items():
            at = self._missing_from[stream]
            while (stream, at) in self._seen:
                at += 1
            self._missing_from[stream] = at
            if at < count:
                return False
        return True

    def read(self) -> None:
        """Take what was written since the last look."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                kind, stream, number, *more = line.decode().split()
                if kind == "A":
                    self.readers.add(more[0])
                else:
                    self._seen.add((stream, int(number)))
