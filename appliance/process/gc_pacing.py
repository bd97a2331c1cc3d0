"""YoungCollection: collects the newest objects often, so that no collection of Python's finds many of them.

Python looks at its newest objects after so many more were made than freed, and now and then at all there are: 50 ms
with thousands of queues or topics, for each object is long out of the processor's cache. Twenty times a second there
are a few hundred new ones, still at hand. What has survived one look is hardly ever looked at again: reference counts
free it, the hot path makes no cycles, and a cycle that lives for longer than PERIOD_S is rare enough to be left.
"""

from __future__ import annotations

import asyncio
import gc

PERIOD_S = 0.05
# new objects until Python looks by itself: above what a thousand queued requests are made of, or it would look all the
# time under load; then how often until it looks at those that survived once, and at everything: practically never
THRESHOLDS = (10_000, 2, 1_000_000)
YOUNG = 1  # generation: the new ones, and what survived Python's own looks


class YoungCollection:
    """Collects until cancelled, then leaves it to Python again."""

    async def run(self) -> None:
        before = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        try:
            while True:
                await asyncio.sleep(PERIOD_S)
                gc.collect(YOUNG)
        finally:
            gc.set_threshold(*before)
