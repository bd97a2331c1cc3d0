"""Detects that this process stalled, or that the clock was set, and logs it: afterwards there is no other trace.

The event loop should turn twice a second. If it did not for seconds, it was blocked by its own work, or the process was
stopped or got no processor: the processor time used in between shows which. If the wall clock and the monotonic clock
disagree, the wall clock was set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple

from appliance.process.awake import awake_s

logger = logging.getLogger(__name__)

EVERY_S = 0.5
STOOD_S = 2.0  # a longer gap between two readings is reported
JUMP_S = 2.0  # smaller steps are time synchronisation at work
BUSY_PART = 0.5  # share of the gap: with less processor time the process itself did not work


class Reading(NamedTuple):
    """The clocks at one moment, seconds: monotonic, wall, and the processor time of this process."""

    steady: float
    wall: float
    worked: float


class Finding(NamedTuple):
    text: str
    facts: dict[str, object]


def compare(before: Reading, now: Reading) -> list[Finding]:
    """Say what happened between two readings that should be EVERY_S apart. Pure."""
    found = []
    elapsed = now.steady - before.steady
    if elapsed - EVERY_S > STOOD_S:
        worked = now.worked - before.worked
        why = "it worked all the time" if worked > BUSY_PART * elapsed else "it was stopped, or the machine was busy"
        found.append(
            Finding(
                "this process stood still, no request was served",
                {"event": "stood_still", "seconds": round(elapsed, 1), "worked_s": round(worked, 1), "why": why},
            )
        )
    jump = (now.wall - before.wall) - elapsed
    if abs(jump) > JUMP_S:
        found.append(
            Finding(
                "the clock was set",
                {"event": "clock_set", "by_seconds": round(jump, 1), "forward": jump > 0},
            )
        )
    return found


def read_clocks() -> Reading:
    """CLOCK_BOOTTIME goes on while the machine sleeps, as the wall clock does; otherwise a resume would look set."""
    return Reading(awake_s(), time.time(), time.process_time())


class StallWatch:
    """A service of every serving process."""

    async def run(self) -> None:
        before = read_clocks()
        while True:
            await asyncio.sleep(EVERY_S)
            now = read_clocks()
            for found in compare(before, now):
                logger.warning(found.text, extra=found.facts)
            before = now
