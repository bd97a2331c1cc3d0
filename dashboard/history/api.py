"""/api/v1/history: what was, by the second, minute or hour; gaps are null."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from django.http import HttpRequest
from ninja import Field, Query, Schema

from dashboard.access.permissions import Permission
from dashboard.history.charts import Line, chart_of, range_of
from dashboard.history.series import name_for
from dashboard.rest.auth import Token
from dashboard.rest.routes import Routes

router = Routes()
READ = Token(Permission.CLUSTER_READ)
Kind = Literal[
    "in", "out", "stored", "disk", "lag", "dead",
    "broker-in", "broker-out", "broker-disk", "broker-full-in-s", "broker-silent-s",
    "slave-behind-s", "slave-behind-bytes", "slave-behind-messages", "slave-in-sync", "slave-bytes-rate",
    "topic-in", "topic-out", "topic-lag", "topic-bytes",
    "group-lag", "group-behind-s", "group-in", "group-out", "group-alone-s", "group-rising-s", "group-lease-s",
    "dead-letters", "no-successor-s", "in-sync-small-s", "etcd-answer-s", "etcd-full-s",
    "failover-paused-s",
]  # fmt: skip


class HistoryMarkOut(Schema):
    """A restart, or a change; changes are shown to tokens that may read the audit log."""

    at: datetime
    text: str


class HistoryOut(Schema):
    """One series. values: one for each step from `since` on; null is not known."""

    kind: Kind
    subject: str
    since: datetime
    step_s: int = Field(description="seconds between two values")
    values: list[float | None]
    marks: list[HistoryMarkOut]


@router.get("", auth=READ, summary="A series over time")
async def get_history(
    request: HttpRequest,
    kind: Kind,
    subject: str = Query("", max_length=255, description="topic, group, broker or slave; empty for the cluster's own"),
    span: Literal["15m", "1h", "6h", "24h", "7d", "30d"] = "1h",
) -> HistoryOut:
    line = Line(kind, name_for(kind, subject), "")
    chart = await chart_of(kind, "", [line], range_of(span), request.auth)  # type: ignore[attr-defined]
    return HistoryOut(
        kind=kind, subject=subject, since=_moment(chart.points[0][0] or 0.0), step_s=chart.step_s,
        values=[point[1] for point in chart.points],
        marks=[HistoryMarkOut(at=_moment(mark.at), text=mark.text) for mark in chart.marks],
    )  # fmt: skip


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
