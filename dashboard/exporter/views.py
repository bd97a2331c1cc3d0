"""GET /metrics for Prometheus: with an API token (`Authorization: Bearer …`), or a person's session to look at it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.exporter.exposition import CONTENT_TYPE
from dashboard.exporter.page import metrics_page
from dashboard.status.board import board


@requires(Permission.METRICS_READ, token=True)
@require_safe
async def metrics(request: HttpRequest) -> HttpResponse:
    snapshot = board.snapshot
    if snapshot is None:
        return HttpResponse("The cluster has not been looked at yet.\n", status=503, content_type="text/plain")
    return HttpResponse(await metrics_page.text(snapshot), content_type=CONTENT_TYPE)
