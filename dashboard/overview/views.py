"""The Overview: is it fine? Live by socket; the fragment is what a page without sockets fetches every few seconds."""

from __future__ import annotations

import asyncio
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from dashboard.access.permissions import Permission, requires
from dashboard.history.charts import RANGES, Line, chart_of, range_of
from dashboard.history.series import IN, OUT
from dashboard.live import frames
from dashboard.overview.lately import lately
from dashboard.overview.sparks import sparks
from dashboard.status.board import board
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge

LIVE = "15m"  # the range that is drawn live
POINT_STEP_S = 5
PROBLEMS_SHOWN = 5
ROWS_MAX = 8  # of the table of brokers; with more, a slave is told in its master's row only
FIRST_SAMPLE_WAIT_S = 0.7  # a page opened right at the start waits this long for the first look at the cluster


@requires(Permission.CLUSTER_READ)
async def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "overview/overview.html", await _context(request))


@requires(Permission.CLUSTER_READ)
async def live(request: HttpRequest) -> HttpResponse:
    return render(request, "overview/_live.html", await _context(request))


def _lines() -> tuple[Line, ...]:
    return Line(gettext("in"), IN, "in"), Line(gettext("out"), OUT, "out")


async def _context(request: HttpRequest) -> dict[str, Any]:
    span = range_of(request.GET.get("range", ""), LIVE)
    chart = None
    if span.key != LIVE:
        principal = request.principal  # type: ignore[attr-defined]
        chart = await chart_of(gettext("Messages per second"), gettext("msg/s"), _lines(), span, principal)
    waited = 0.0
    while board.snapshot is None and waited < FIRST_SAMPLE_WAIT_S:
        await asyncio.sleep(0.1)
        waited += 0.1
    snapshot = board.snapshot
    verdict = judge(snapshot)
    return {
        "snapshot": snapshot,
        "verdict": verdict,
        "metrics": overview_metrics(snapshot, verdict) if snapshot else None,
        "points": _thinned(frames.points(board)),
        "minutes": _minutes(frames.points(board)),
        "chart": chart,
        "sparks": await sparks(),
        "lately": await lately(request.principal),  # type: ignore[attr-defined]
        "folds_slaves": snapshot is not None and len(snapshot.brokers) > ROWS_MAX,
        "problems_shown": PROBLEMS_SHOWN,
        "problems_more": verdict.problems[PROBLEMS_SHOWN:],
        "ranges": list(RANGES.values()),
        "span": span,
        "is_new": snapshot is not None and snapshot.stored is not None and snapshot.stored.topics == 0,
        "namesrv_address": settings.APPLIANCE.namesrv_address,
    }


def _thinned(points: list[list[float | None]]) -> list[list[float | None]]:
    """The chart's first drawing, a mean of each few seconds: the socket brings every second of it right after."""
    by_step: dict[int, list[list[float | None]]] = {}
    for point in points:
        assert point[0] is not None
        by_step.setdefault(int(point[0]) // POINT_STEP_S, []).append(point)
    return [
        [rows[-1][0], *(None if mean is None else round(mean, 1) for mean in (_mean(rows, 1), _mean(rows, 2)))]
        for rows in by_step.values()
    ]


def _minutes(points: list[list[float | None]]) -> list[dict[str, float | None]]:
    """The chart as a table: a row a minute, newest first."""
    by_minute: dict[int, list[list[float | None]]] = {}
    for point in points:
        assert point[0] is not None
        by_minute.setdefault(int(point[0]) // 60 * 60, []).append(point)
    return [
        {"at_ms": minute * 1000, "in_rate": _mean(rows, 1), "out_rate": _mean(rows, 2)}
        for minute, rows in sorted(by_minute.items(), reverse=True)
    ]


def _mean(rows: list[list[float | None]], column: int) -> float | None:
    values = [value for row in rows if (value := row[column]) is not None]
    return sum(values) / len(values) if values else None
