"""The histograms in the database: minutes for six hours, then five of them in one, after a day an hour in one.

So a topic and group have at most some 1 300 rows, of a few bytes for each bound that has messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from asgiref.sync import sync_to_async
from django.db import transaction

from dashboard.latency.book import Measured, Pair
from dashboard.latency.histogram import Histogram
from dashboard.models.latency import LatencyBlock

MINUTE, FIVE_MINUTES, HOUR, DAY = 60, 300, 3600, 24 * 3600
COARSER = ((MINUTE, 6 * HOUR, FIVE_MINUTES), (FIVE_MINUTES, DAY, HOUR))  # step, kept for, what it becomes
KEPT_S = 30 * DAY
ROWS_A_TURN = 5000
KEY = ("topic", "group", "step_s", "start")


async def keep(start: int, pairs: Iterable[tuple[Pair, Measured]]) -> None:
    """One minute's. Raises DatabaseError."""
    rows = [
        LatencyBlock(topic=topic[: LatencyBlock.NAME_MAX], group=group[: LatencyBlock.NAME_MAX], step_s=MINUTE,
                     start=start, counts=one.histogram.to_bytes(), unmeasured=one.unmeasured)
        for (topic, group), one in pairs
    ]  # fmt: skip
    await LatencyBlock.objects.abulk_create(
        rows, update_conflicts=True, update_fields=["counts", "unmeasured"], unique_fields=KEY
    )


@sync_to_async
def condense(now: float) -> None:
    """Make coarser what is old, and delete what is older than KEPT_S. Raises DatabaseError."""
    for step, kept, coarse in COARSER:
        before = int(now - kept) // coarse * coarse
        while _condense_some(step, before, coarse):
            pass
    LatencyBlock.objects.filter(start__lt=int(now) - KEPT_S).delete()


def _condense_some(step: int, before: int, coarse: int) -> bool:
    """The oldest rows, in one transaction: whatever ends the process, nothing is counted twice."""
    with transaction.atomic():
        old = LatencyBlock.objects.filter(step_s=step, start__lt=before).order_by("start")[:ROWS_A_TURN]
        rows = list(old)
        sums: dict[tuple[str, str, int], Measured] = defaultdict(Measured)
        for row in rows:
            _add(sums[row.topic, row.group, row.start // coarse * coarse], row)
        starts = {start for _, _, start in sums}
        for row in LatencyBlock.objects.filter(step_s=coarse, start__in=starts):  # of a turn before
            if (key := (row.topic, row.group, row.start)) in sums:
                _add(sums[key], row)
        LatencyBlock.objects.bulk_create(
            [
                LatencyBlock(topic=topic, group=group, step_s=coarse, start=start,
                             counts=one.histogram.to_bytes(), unmeasured=one.unmeasured)
                for (topic, group, start), one in sums.items()
            ],
            update_conflicts=True, update_fields=["counts", "unmeasured"], unique_fields=KEY,
        )  # fmt: skip
        LatencyBlock.objects.filter(pk__in=[row.pk for row in rows]).delete()
    return len(rows) == ROWS_A_TURN


def _add(sum_: Measured, row: LatencyBlock) -> None:
    sum_.histogram.counts.update(Histogram.from_bytes(bytes(row.counts)).counts)
    sum_.unmeasured += row.unmeasured
