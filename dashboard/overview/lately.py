"""What happened lately: alerts, restarts, and for those who may read the audit log what people changed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from django.urls import reverse

from dashboard.access.permissions import Principal
from dashboard.history.block_builder import MINUTE
from dashboard.history.charts import marks_of
from dashboard.models.alerts import AlertRow
from dashboard.status.check import Level

DAY_S = 24 * 3600
SHOWN = 5  # two lines each are as high as the chart beside them
ALIKE_S = 5 * MINUTE  # what an account did again and again within such a time is one line


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
    for mark in await marks_of(begin, until, ALIKE_S, principal):
        found.append(Happened(_ms(mark.at), mark.text, reverse("audit" if mark.is_change else "brokers")))
    return sorted(found, key=lambda one: -one.at_ms)[:SHOWN]


def _of_alert(row: AlertRow) -> Happened:
    at_ms, link = _ms(row.begun_at.timestamp()), reverse("alert", args=[row.pk])
    return Happened(at_ms, row.said("title"), link, Level(row.level))


def _ms(at: float) -> int:
    return int(at * 1000)
