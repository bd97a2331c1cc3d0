"""How long a topic's or a group's messages took over a range: percentiles over time, and a histogram. Pages and REST
show the same.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.utils.translation import gettext

from dashboard.access.permissions import Principal
from dashboard.cluster import units
from dashboard.history.charts import Chart, Line, Range, marks_of
from dashboard.latency.book import NO_GROUP, NO_TOPIC
from dashboard.latency.histogram import Histogram, summed
from dashboard.latency.kept import HOUR, MINUTE
from dashboard.limits.names import current
from dashboard.models.latency import LatencyBlock

SHARES = (0.5, 0.95, 0.99)
STYLES = ("p50", "p95", "p99")  # of the style sheet


@dataclass(slots=True)
class PairFigures:
    """One topic and group. by_step: by the begin of each step, only of those with messages."""

    topic: str
    group: str
    by_step: dict[int, Histogram] = field(default_factory=dict)
    unmeasured: int = 0

    @property
    def whole(self) -> Histogram:
        return summed(self.by_step.values())


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """pairs: the one with the most messages first. unmeasured: handled by the group, without a known topic.
    skipped: trace messages of all topics that were not read.
    """

    since: int
    until: int
    step_s: int
    pairs: tuple[PairFigures, ...]
    unmeasured: int
    skipped: int

    @property
    def whole(self) -> Histogram:
        return summed(pair.whole for pair in self.pairs)

    @property
    def rows(self) -> list[tuple[PairFigures, Histogram, list[str]]]:
        """For a table: the pair, its messages, its percentiles in words."""
        return [(pair, whole, in_words(whole)) for pair in self.pairs for whole in (pair.whole,)]

    @property
    def percentiles(self) -> list[tuple[str, str]]:
        return list(zip(names(), in_words(self.whole), strict=True))

    @property
    def bars(self) -> list[tuple[str, int, str, str]]:
        """(up to, messages, percent of all, percent of the longest bar), one for each bound."""
        buckets, total = self.whole.coarse, self.whole.total
        most = max((count for _, count in buckets), default=0)
        return [
            (bound_in_words(bound), count, f"{count / total * 100:.1f}", f"{count / most * 100:.1f}")
            for bound, count in buckets
        ]

    @property
    def all_unmeasured(self) -> int:
        return self.unmeasured + sum(pair.unmeasured for pair in self.pairs)

    async def chart(self, span: Range, principal: Principal | None) -> Chart:
        by_step: dict[int, list[Histogram]] = defaultdict(list)
        for pair in self.pairs:
            for at, one in pair.by_step.items():
                by_step[at].append(one)
        points = tuple(
            (float(at), *(summed(by_step.get(at, ())).percentile(share) for share in SHARES))
            for at in range(self.since, self.until, self.step_s)
        )
        lines = tuple(Line(name, "", style) for name, style in zip(names(), STYLES, strict=True))
        marks = await marks_of(self.since, self.until, self.step_s, principal)
        return Chart(gettext("End-to-end latency"), "ms", lines, span, self.step_s, points, marks)


def names() -> list[str]:
    return [f"p{share * 100:.0f}" for share in SHARES]


def in_words(histogram: Histogram) -> list[str]:
    return [bound_in_words(histogram.percentile(share)) for share in SHARES]


def bound_in_words(bound_ms: int | None) -> str:
    """200 s, not 3 min: what took at most this long may have taken more than the minutes or hours that are whole."""
    if bound_ms is None or bound_ms < MINUTE * 1000:
        return units.milliseconds(bound_ms)
    return gettext("%(count)s\u202fs") % {"count": units.count(bound_ms // 1000)}


async def figures_of(span: Range, *, topic: str = "", group: str = "", now: float | None = None) -> LatencyFigures:
    """Of one topic, one group, or both; what the account may not see is left out."""
    at = int(time.time() if now is None else now)
    step = max(span.step_s, MINUTE if span.seconds <= 6 * HOUR else 5 * MINUTE)
    since, until = (at - span.seconds) // step * step, at // step * step + step
    found = await _read(since, until, step, topic, group)
    limit = current()
    pairs = [
        pair for (of_topic, of_group), pair in found.items()
        if of_topic != NO_TOPIC and limit.allows(of_topic) and limit.allows(of_group)
    ]  # fmt: skip
    pairs.sort(key=lambda pair: (-pair.whole.total, pair.topic, pair.group))
    lost = {key: found[key].unmeasured for key in ((NO_TOPIC, group), (NO_TOPIC, NO_GROUP)) if key in found}
    return LatencyFigures(
        since, until, step, tuple(pairs),
        lost.get((NO_TOPIC, group), 0) if group else 0, lost.get((NO_TOPIC, NO_GROUP), 0),
    )  # fmt: skip


@sync_to_async
def _read(since: int, until: int, step: int, topic: str, group: str) -> dict[tuple[str, str], PairFigures]:
    wanted = (Q(topic=topic) if topic else ~Q(topic=NO_TOPIC)) & (Q(group=group) if group else Q())
    lost = Q(topic=NO_TOPIC, group__in=(group, NO_GROUP))
    rows = LatencyBlock.objects.filter(wanted | lost, start__gte=since, start__lt=until)
    found: dict[tuple[str, str], PairFigures] = {}
    for of_topic, of_group, start, counts, unmeasured in rows.values_list(
        "topic", "group", "start", "counts", "unmeasured"
    ).iterator():
        pair = found.setdefault((of_topic, of_group), PairFigures(of_topic, of_group))
        pair.unmeasured += unmeasured
        if counts:
            whole = pair.by_step.setdefault(start // step * step, Histogram())
            whole.counts.update(Histogram.from_bytes(bytes(counts)).counts)
    return found
