"""The Overview: is it fine? Live by socket; the fragment is what a page without sockets fetches every few seconds."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.access.permissions import Permission, Principal, requires
from dashboard.history.block_builder import MINUTE
from dashboard.history.charts import RANGES, Line, chart_of, marks_of, range_of
from dashboard.history.series import IN, OUT
from dashboard.live import frames
from dashboard.models.alerts import AlertRow
from dashboard.overview.sparks import sparks
from dashboard.status.board import board
from dashboard.status.check import Level
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge

LIVE = "15m"  # the range that is drawn live
POINT_STEP_S = 5
PROBLEMS_SHOWN = 5
ROWS_MAX = 8  # of the table of brokers; with more, a slave is told in its master's row only
FIRST_SAMPLE_WAIT_S = 0.7  # a page opened right at the start waits this long for the first look at the cluster
DAY_S = 24 * 3600
SHOWN = 5  # two lines each are as high as the chart beside them
ALIKE_S = 5 * MINUTE  # what an account did again and again within such a time is one line


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


@dataclass(frozen=True, slots=True)
class Happened:
    """level: of an alert; GOOD: a restart or a change. link: the alert, the audit log, or the process."""

    at_ms: int
    text: str
    link: str
    level: Level = Level.GOOD

    @property
    def is_alert(self) -> bool:
        return self.level is not Level.GOOD


async def lately(principal: Principal | None, now: float | None = None) -> list[Happened]:
    """The newest of the last day first."""
    until = int(time.time() if now is None else now)
    begin = until - DAY_S
    since = datetime.fromtimestamp(begin, UTC)
    rows = AlertRow.objects.filter(begun_at__gte=since).order_by("-begun_at")[:SHOWN]
    found = [_of_alert(row) async for row in rows]
    changes, restarts = [], defaultdict(list)
    for mark in await marks_of(begin, until, ALIKE_S, principal):
        if mark.is_change:
            changes.append(Happened(_ms(mark.at), mark.text, reverse("audit")))
        else:
            restarts[mark.text].append(_ms(mark.at))
    for text, times in restarts.items():  # equal lines would push out what else happened
        folded = f"{text} × {len(times)}" if len(times) > 1 else text
        found.append(Happened(max(times), folded, reverse("brokers")))
    return sorted([*found, *changes], key=lambda one: -one.at_ms)[:SHOWN]


def _of_alert(row: AlertRow) -> Happened:
    at_ms, link = _ms(row.begun_at.timestamp()), reverse("alert", args=[row.pk])
    return Happened(at_ms, row.said("title"), link, Level(row.level))


def _ms(at: float) -> int:
    return int(at * 1000)
