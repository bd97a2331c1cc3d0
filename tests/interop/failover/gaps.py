"""How long a client was without: from what it told to seconds. No I/O."""

from __future__ import annotations

import datetime
import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Sent(NamedTuple):
    """One send. broker: the name of the one that accepted it, "" for none. Times in ms of the wall clock."""

    began_ms: int
    ended_ms: int
    number: int
    broker: str


class Got(NamedTuple):
    at_ms: int
    number: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """Seconds after a loss. Of any broker name: the longest time without an accepted send, and without a delivery. Of
    the struck one: until the first send that began after the loss was accepted, and until such a message came; and what
    of it no client can shorten, until the name server had another master. None: that did not happen while the client
    was watched."""

    sends_s: float | None
    deliveries_s: float | None
    struck_sends_s: float | None
    struck_deliveries_s: float | None
    routed_s: float | None = None


def gaps(sent: Sequence[Sent], got: Sequence[Got], lost_ms: int, struck: str) -> Gaps:
    """What the loss of the broker `struck` at that time cost this client."""
    later = {each.number: each for each in sent if each.broker == struck and each.began_ms >= lost_ms}
    return Gaps(
        _longest([each.ended_ms for each in sent if each.broker], lost_ms),
        _longest([each.at_ms for each in got], lost_ms),
        _first([each.ended_ms for each in later.values()], lost_ms),
        _first([each.at_ms for each in got if each.number in later], lost_ms),
    )


def routed_s(log: Iterable[str], lost_ms: int, struck: str) -> float | None:
    """When a master of that broker name registered next, as the log of the name server has it."""
    words = {"event=broker_registered", f"broker_name={struck}", "broker_id=0"}
    lines = (line for line in log if words <= set(line.split()))
    times = (datetime.datetime.fromisoformat(line[:23]).timestamp() - lost_ms / 1000 for line in lines)
    return next((each for each in times if each > 0), None)


def _longest(times_ms: Iterable[int], lost_ms: int) -> float | None:
    """Of the pauses that end after the loss."""
    pauses = [
        later - max(earlier, lost_ms) for earlier, later in itertools.pairwise(sorted(times_ms)) if later > lost_ms
    ]
    return max(pauses) / 1000 if pauses else None


def _first(times_ms: Iterable[int], lost_ms: int) -> float | None:
    return min(((each - lost_ms) / 1000 for each in times_ms), default=None)


def summary(values: Sequence[float | None]) -> str:
    """Median and largest; what did not come is larger than anything."""
    known = sorted(value for value in values if value is not None)
    if len(known) < len(values):
        return f"{len(values) - len(known)} of {len(values)} not in time"
    return f"{statistics.median(known):.1f} / {known[-1]:.1f}" if known else ""
