"""Paces Python's garbage collector: frequent collections of the youngest objects, practically no full ones.

By default Python starts a collection after a number of allocations, and from time to time a full one: that takes 50 ms
with thousands of queues or topics, because the old objects are no longer in the processor's cache. GcPacer collects
twenty times a second instead, when there are only a few hundred new objects, still in the cache. Where hardly any come
it looks once a second, so that an idle process sleeps; a burst meanwhile has Python's own collections. Objects that
have survived one collection are hardly ever examined again: reference counting frees them, the hot path creates no
cycles, and cycles that live longer than a pause are too rare to matter.
"""

from __future__ import annotations

import asyncio
import gc

PERIOD_S = 0.05
QUIET_PERIOD_S = 1.0
FEW_OBJECTS = 100  # new ones since the last look: the next may come later
# gc.set_threshold: allocations before an automatic collection (a thousand queued requests need fewer, otherwise every
# burst would trigger one), collections of generation 0 for each of generation 1, and of 1 for each full one: never.
THRESHOLDS = (10_000, 2, 1_000_000)
YOUNG = 1  # collects generations 0 and 1: new objects, and survivors of the automatic collections
SETTLED_S = 5.0


def collect_at_start() -> None:
    """As soon as a process's first broker is open, when no client waits for it yet: what loading has left behind goes,
    and what it has made is not examined again."""
    gc.collect()
    gc.freeze()


def collect_all_later() -> asyncio.TimerHandle:
    """Once, what an earlier role left behind, when this one has answered who waited for it: a full collection examines
    each queue and topic, for the longer the more there are, and clients of a lost master have none meanwhile."""
    return asyncio.get_running_loop().call_later(SETTLED_S, _collect_all)


def _collect_all() -> None:
    gc.unfreeze()
    collect_at_start()


def next_pause_s(pause_s: float, new_objects: int) -> float:
    """How long to wait after a pause in which that many objects came. Pure."""
    return PERIOD_S if new_objects >= FEW_OBJECTS else min(2 * pause_s, QUIET_PERIOD_S)


class GcPacer:
    """Collects until cancelled, then restores Python's own thresholds."""

    async def run(self) -> None:
        before = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        pause_s = PERIOD_S
        try:
            while True:
                await asyncio.sleep(pause_s)
                pause_s = next_pause_s(pause_s, gc.get_count()[0])
                gc.collect(YOUNG)
        finally:
            gc.set_threshold(*before)
