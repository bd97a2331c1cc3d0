"""Charts of replication: a master's slaves, a line each, or how a slave itself was."""

from __future__ import annotations

import time

from django.utils.translation import gettext, gettext_noop

from dashboard.access.permissions import Principal
from dashboard.history.block_builder import MINUTE, block_start
from dashboard.history.charts import Chart, Line, Range, chart_of
from dashboard.history.series import (
    SEPARATOR,
    SLAVE_BEHIND,
    SLAVE_BYTES,
    SLAVE_FED,
    SLAVE_IN_SYNC,
    SLAVE_MESSAGES,
    name_for,
    subject_of,
)
from dashboard.models.history import HistoryBlock
from dashboard.status.board import BrokerState, Snapshot
from dashboard.status.slave_metrics import seen_slaves

SLAVES_MAX = 5  # lines of a chart
AFTER_SEPARATOR = chr(ord(SEPARATOR) + 1)
CHARTS = (  # title, unit, kind, scale
    (gettext_noop("Bytes behind"), "B", SLAVE_BYTES, 1.0),
    (gettext_noop("Messages behind"), "messages", SLAVE_MESSAGES, 1.0),
    (gettext_noop("Seconds behind"), "s", SLAVE_BEHIND, 1.0),
    (gettext_noop("In sync, % of the time"), "%", SLAVE_IN_SYNC, 100.0),
    (gettext_noop("Transfer rate"), "B/s", SLAVE_FED, 1.0),
)


async def slave_charts(
    broker: BrokerState, snapshot: Snapshot | None, span: Range, principal: Principal | None
) -> list[Chart]:
    """One for each figure; none for a broker that had no slave in that time and is none."""
    names = [broker.name] if broker.is_slave else await _slaves_of(broker.broker_name, snapshot, span)
    charts = []
    for title, unit, kind, scale in CHARTS:
        lines = [
            Line(name, name_for(kind, name), f"slave-{number}", scale)
            for number, name in enumerate(names[:SLAVES_MAX], start=1)
        ]
        charts.append(await chart_of(gettext(title), unit, lines, span, principal))
    return [chart for chart in charts if not chart.is_empty]


async def _slaves_of(broker: str, snapshot: Snapshot | None, span: Range) -> list[str]:
    """Who is connected, and who was: a slave that does not tell its name is known while it is connected."""
    now = [name for master, name, _ in seen_slaves(snapshot) if master == broker] if snapshot is not None else []
    since = block_start(MINUTE, time.time() - span.seconds)
    first, behind_last = (name_for(SLAVE_BYTES, broker + end) for end in (SEPARATOR, AFTER_SEPARATOR))
    rows = HistoryBlock.objects.filter(series__gte=first, series__lt=behind_last, step_s=MINUTE, start__gte=since)
    were = [subject_of(series) async for series in rows.values_list("series", flat=True).distinct()]
    return sorted({*now, *were})
