"""/api/v1/latency: how long messages took from sent to handled."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Field, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.history.charts import range_of
from dashboard.latency.figures import SHARES, PairFigures, figures_of
from dashboard.latency.histogram import Histogram
from dashboard.limits.names import current
from dashboard.rest.auth import Token
from dashboard.rest.lists import Cursor, Limit, Listed, part_of
from dashboard.rest.routes import Routes

router = Routes()
READ = Token(Permission.GROUPS_READ)


class PercentilesOut(Schema):
    """Within so many milliseconds half of the messages, 95 % and 99 % were handled, rounded up to the next bound of the
    histogram (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30 and so on); null without messages.
    """

    messages: int
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None


class LatencyPointOut(PercentilesOut):
    """One step."""

    at: datetime


class LatencyBucketOut(Schema):
    """So many messages took longer than the bound before, and at most this."""

    up_to_ms: int
    messages: int


class LatencyOut(PercentilesOut):
    """A topic and a group. points: steps with messages. unmeasured: handled, but the sender's clock was ahead."""

    topic: str
    group: str
    unmeasured: int
    histogram: list[LatencyBucketOut]
    points: list[LatencyPointOut]

    @classmethod
    def of_pair(cls, pair: PairFigures) -> LatencyOut:
        whole = pair.whole
        return cls(
            topic=pair.topic, group=pair.group, unmeasured=pair.unmeasured,
            histogram=[LatencyBucketOut(up_to_ms=bound, messages=count) for bound, count in whole.buckets],
            points=[LatencyPointOut(at=datetime.fromtimestamp(at, UTC), **_percentiles(one))
                    for at, one in sorted(pair.by_step.items())],
            **_percentiles(whole),
        )  # fmt: skip


class LatencyList(Listed[LatencyOut]):
    """The pair with the most messages first. unmeasured: handled by `group`, but no sender reported the message.

    skipped_traces: trace messages of the whole cluster that were not read, because more arrived than are read.
    """

    since: datetime
    step_s: int = Field(description="seconds between two points")
    unmeasured: int
    skipped_traces: int


@router.get("", auth=READ, summary="End-to-end latency by topic and group, from traces")
async def list_latency(
    request: HttpRequest,
    topic: str = Query("", max_length=255),
    group: str = Query("", max_length=255),
    span: Literal["15m", "1h", "6h", "24h", "7d", "30d"] = "1h",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> LatencyList:
    part = part_of(cursor, limit)
    for name in filter(None, (topic, group)):
        if not current().allows(name):
            raise current().refusal()
    found = await figures_of(range_of(span), topic=topic, group=group)
    return LatencyList.cut(
        part, map(LatencyOut.of_pair, found.pairs[part.rows]), len(found.pairs),
        since=datetime.fromtimestamp(found.since, UTC), step_s=found.step_s,
        unmeasured=found.unmeasured, skipped_traces=found.skipped,
    )  # fmt: skip


def _percentiles(histogram: Histogram) -> dict[str, Any]:
    found = {f"p{share * 100:.0f}_ms": histogram.percentile(share) for share in SHARES}
    return {"messages": histogram.total, **found}
