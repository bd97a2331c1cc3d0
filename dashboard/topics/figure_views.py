"""A topic's figures over time, and who sends to it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from dashboard.access.permissions import Permission, requires
from dashboard.cluster.gateway import gateway
from dashboard.history.charts import Line, chart_of, range_of
from dashboard.history.series import TOPIC_IN, TOPIC_LAG, TOPIC_OUT, TOPIC_SIZE, name_for
from dashboard.latency.card import latency_context
from dashboard.topics.topic_cache import topic_book
from dashboard.topics.views import topic_context


@requires(Permission.TOPICS_READ)
async def charts(request: HttpRequest, name: str) -> HttpResponse:
    """In and out, the lag of the group that is furthest behind, and the bytes; the address has the range."""
    detail = await gateway().topics.get(name)
    span, principal = range_of(request.GET.get("range", "")), request.principal  # type: ignore[attr-defined]
    rates = (
        Line(gettext("in"), name_for(TOPIC_IN, name), "in"),
        Line(gettext("consumed"), name_for(TOPIC_OUT, name), "out"),
    )
    lag = (Line(gettext("lag"), name_for(TOPIC_LAG, name), "lag"),)
    size = (Line(gettext("size"), name_for(TOPIC_SIZE, name), "in"),)
    found = [
        await chart_of(gettext("Messages per second"), gettext("msg/s"), rates, span, principal),
        await chart_of(gettext("Lag of the worst group"), gettext("messages"), lag, span, principal),
        await chart_of(gettext("Size in the logs"), "B", size, span, principal),
    ]
    context = await topic_context(detail, "charts") | await latency_context(request, topic=name)
    return render(request, "topics/charts.html", context | {"charts": found})


@requires(Permission.TOPICS_READ)
async def producers(request: HttpRequest, name: str) -> HttpResponse:
    """Connected clients that sent the newest messages."""
    detail = await gateway().topics.get(name)
    facts = topic_book.facts(name, detail.addresses)
    return render(request, "topics/producers.html", await topic_context(detail, "producers") | {"facts": facts})
