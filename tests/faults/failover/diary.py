"""What happened while nobody's send was accepted: the faults, what each member logged, how late this process woke.

Lines of logs are timed when they come, on this process's clock: the brokers' clocks are set, and their rates.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from tests.faults.replication.recorder import Recorder
from tests.waiting import Beside

LOOK_S = 0.1
LATE_S = 0.4  # of a look: somebody else had the core, so members may have been late, too
LOAD_EVERY_S = 5.0
BEFORE_S, AFTER_S = 6.0, 1.0  # of a gap: what led to it, and what ended it
LINE_MAX = 240
PASSING = re.compile(
    rb"event=(connection_(opened|closed)|(producer|consumer)_(joined|left)|lane_watermark)|"
    rb"took too long|overloaded|heartbeat on time"
)


class Entry(NamedTuple):
    at: float  # of the monotonic clock
    text: str


class Diary(Beside):
    """Written while its block runs. logs: by the name that they get here."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        super().__init__(self._run, "diary")
        self._logs = logs
        self._open: dict[str, BinaryIO] = {}
        self.entries: list[Entry] = []

    def note(self, text: str) -> None:
        self.entries.append(Entry(time.monotonic(), text))

    def _run(self) -> None:
        due, load_due = time.monotonic(), 0.0
        while True:
            now = time.monotonic()
            if now - due > LATE_S:
                self.note(f"this process woke {now - due:.1f} s late")
            if now >= load_due:
                self.note("load " + " ".join(f"{each:.1f}" for each in os.getloadavg()[:2]))
                load_due = now + LOAD_EVERY_S
            for name, path in self._logs.items():
                self._read(name, path)
            due = time.monotonic() + LOOK_S
            if self.ends.wait(LOOK_S):
                return

    def _read(self, name: str, path: Path) -> None:
        """Whole lines that have come; the rest of the last one is read again."""
        if name not in self._open:
            if not path.exists():
                return
            self._open[name] = path.open("rb")
        file = self._open[name]
        for line in iter(file.readline, b""):
            if not line.endswith(b"\n"):
                file.seek(-len(line), os.SEEK_CUR)
                return
            if not PASSING.search(line):
                self.note(f"{name}: {line.decode('utf-8', 'replace').rstrip()[:LINE_MAX]}")

    def long_gaps(self, recorders: Sequence[Recorder], since: float, longer_than_s: float) -> Iterator[str]:
        """Each time without an accepted send of that length, and all that was written then, with seconds from its
        begin."""
        accepted_at = sorted(at for recorder in recorders for at in recorder.acknowledged_at if at >= since)
        turns = [(recorder.sender, *turn) for recorder in recorders for turn in recorder.turns]
        answers = [Entry(at, f"sender to {name}, after {at - sent:.1f} s: {what}") for name, sent, at, what in turns]
        written = sorted([*self.entries, *answers])
        for begin, end in itertools.pairwise(accepted_at):
            if end - begin > longer_than_s:
                yield f"-- {end - begin:.1f} s without an accepted send"
                near = (each for each in written if begin - BEFORE_S <= each.at <= end + AFTER_S)
                yield from (f"{at - begin:7.1f}  {text}" for at, text in near)
