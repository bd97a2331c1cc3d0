"""A broker's page: how it is now and was, what was done to it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.brokers.changes import entries_of
from dashboard.brokers.tabs import Tabs
from dashboard.cluster.errors import GatewayError
from dashboard.cluster.gateway import gateway
from dashboard.history.charts import Chart, Line, Range, chart_of, range_of
from dashboard.history.series import BROKER_DISK, BROKER_IN, BROKER_OUT, BROKER_SILENT, name_for
from dashboard.history.slave_charts import slave_charts
from dashboard.http.error_pages import gateway_error
from dashboard.status.board import BrokerState, board
from dashboard.status.metrics import overview_metrics
from dashboard.status.verdict import judge

ENTRIES_SHOWN = 10


@requires(Permission.CLUSTER_READ)
@require_safe
async def broker(request: HttpRequest, name: str) -> HttpResponse:
    """As it was looked at last, live by the Overview's channel; a broker that is gone stays while it is known."""
    snapshot, principal = board.snapshot, request.principal  # type: ignore[attr-defined]
    state = next((one for one in snapshot.brokers if one.name == name), None) if snapshot is not None else None
    if state is None:
        try:
            found = await gateway().brokers.get(name)
        except GatewayError as exc:
            return gateway_error(request, exc)
        state = BrokerState(name, found.address, None, gettext("not checked yet"), broker_id=found.broker_id)
    span = range_of(request.GET.get("range", ""))
    may_see_changes = principal.may(Permission.AUDIT_READ)
    context: dict[str, Any] = {
        "broker": state,
        "tabs": Tabs(state.name, state.broker_name, "broker"),
        "snapshot": snapshot,
        "metrics": overview_metrics(snapshot, judge(snapshot)) if snapshot is not None else None,
        "charts": await _charts(name, span, principal),
        "slave_charts": await slave_charts(state, snapshot, span, principal),
        "entries": await entries_of(name, ENTRIES_SHOWN) if may_see_changes else None,
    }
    return render(request, "brokers/broker.html", context)


async def _charts(name: str, span: Range, principal: Any) -> list[Chart]:
    rates = (
        Line(gettext("in"), name_for(BROKER_IN, name), "in"),
        Line(gettext("out"), name_for(BROKER_OUT, name), "out"),
    )
    disk = (Line(gettext("used %"), name_for(BROKER_DISK, name), "in", 100.0),)
    silent = (Line(gettext("silent"), name_for(BROKER_SILENT, name), "out"),)
    return [
        await chart_of(gettext("Messages per second"), "msg/s", rates, span, principal),
        await chart_of(gettext("Disk"), "%", disk, span, principal),
        await chart_of(gettext("Time without an answer"), "s", silent, span, principal),
    ]
