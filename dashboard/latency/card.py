"""What the pages of a topic and of a group show of the latency."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from dashboard.history.charts import range_of
from dashboard.latency.figures import figures_of


async def latency_context(request: HttpRequest, *, topic: str = "", group: str = "") -> dict[str, Any]:
    """Of one of the two. The range is the page's."""
    span = range_of(request.GET.get("range", ""))
    figures = await figures_of(span, topic=topic, group=group)
    chart = await figures.chart(span, request.principal) if figures.pairs else None  # type: ignore[attr-defined]
    return {"latency": figures, "latency_span": span, "latency_chart": chart}
