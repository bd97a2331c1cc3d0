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

from appliance.register.renewals import STANDS_STILL
from tests.faults.replication.history import Finding
from tests.faults.replication.recorder import Recorder
from tests.waiting import Beside

LOOK_S = 0.1
LATE_S = 0.4  # of a look: somebody else had the core, so members may have been late, too
STEPS_DOWN = "event=master_steps_down"
LOAD_EVERY_S = 5.0
BEFORE_S, AFTER_S = 6.0, 1.0  # of a gap: what led to it, and what ended it
LINE_MAX = 240
STARVED = re.compile(rb"took too long|overloaded|heartbeat on time")  # what etcd says of its disk and its cores
PASSING = re.compile(
    rb"event=(connection_(opened|closed)|(producer|consumer)_(joined|left)|lane_watermark)|" + STARVED.pattern
)


class Entry(NamedTuple):
    at: float  # of the monotonic clock
    text: str


class Calm(NamedTuple):
    """A time in which nobody struck the group: a master that steps down then was taken its role by nothing.

    late_s: how late this process woke at most; is_etcd_starved: by its own words; steps_down: what masters logged.
    """

    late_s: float
    is_etcd_starved: bool
    steps_down: list[str]

    def findings(self, may_be_late_s: float) -> list[Finding]:
        """None of a machine that let members wait for so long, and none for want of an etcd that waits for its cores
        (a master that stands still does not ask it): those are blows, too."""
        if self.late_s >= may_be_late_s:
            return []
        found = (text for text in self.steps_down if STANDS_STILL in text or not self.is_etcd_starved)
        return [Finding("changed_without_a_blow", text) for text in found]


class Diary(Beside):
    """Written while its block runs. logs: by the name that they get here."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        super().__init__(self._run, "diary")
        self._logs = logs
        self._open: dict[str, BinaryIO] = {}
        self.entries: list[Entry] = []
        self.late: list[tuple[float, float]] = []  # when this process woke, and how late
        self.etcd_starved_at: list[float] = []

    def note(self, text: str) -> None:
        self.entries.append(Entry(time.monotonic(), text))

    def _run(self) -> None:
        due, load_due = time.monotonic(), 0.0
        while True:
            now = time.monotonic()
            if now - due > LATE_S:
                self.late.append((now, now - due))
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
            if STARVED.search(line):
                self.etcd_starved_at.append(time.monotonic())
            if not PASSING.search(line):
                self.note(f"{name}: {line.decode('utf-8', 'replace').rstrip()[:LINE_MAX]}")

    def calm(self, since: float) -> Calm:
        """The time since then, in which there was none of the faults."""
        late_s = max((late_s for at, late_s in list(self.late) if at >= since), default=0.0)
        is_etcd_starved = any(at >= since for at in list(self.etcd_starved_at))
        steps_down = [each.text for each in list(self.entries) if each.at >= since and STEPS_DOWN in each.text]
        return Calm(late_s, is_etcd_starved, steps_down)

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
