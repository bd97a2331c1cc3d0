"""Noticing that this process stood still, or that the clock was set: nobody else can tell afterwards.

A loop that should turn twice a second and did not for seconds was held up (by its own work, or the machine's), or was
stopped: the processor time that it took meanwhile tells which. A clock that went another way than the time that never
jumps was set.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple

logger = logging.getLogger(__name__)

EVERY_S = 0.5
STOOD_S = 2.0  # more than this between two looks is told
JUMP_S = 2.0  # what a clock is set by; it is corrected by far less at a time
BUSY_PART = 0.5  # of the time that the loop stood: less processor time, and it was not this process that worked


class Reading(NamedTuple):
    """The clocks at one moment, seconds: the one that never jumps, the one on the wall, this process's own work."""

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
                "this process stood still, nobody was served",
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
    """time.CLOCK_BOOTTIME goes on while the machine sleeps, as the clock on the wall does."""
    return Reading(time.clock_gettime(time.CLOCK_BOOTTIME), time.time(), time.process_time())


class StandstillWatch:
    """A service of each process that serves."""

    async def run(self) -> None:
        before = read_clocks()
        while True:
            await asyncio.sleep(EVERY_S)
            now = read_clocks()
            for found in compare(before, now):
                logger.warning(found.text, extra=found.facts)
            before = now
