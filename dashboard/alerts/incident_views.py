"""Incidents: what was wrong, from when until when."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.alerts.incident_keeper import KEPT
from dashboard.alerts.incident_listing import count_incidents, list_incidents
from dashboard.http.paging import page_of

PAGE_INCIDENTS = 50
TEXT_MAX = 200


@requires(Permission.CLUSTER_READ)
@require_safe
async def incidents(request: HttpRequest) -> HttpResponse:
    """The list as the address says: q, show=open, page."""
    wanted, only_open = request.GET.get("q", "").strip()[:TEXT_MAX], request.GET.get("show") == "open"
    total = await count_incidents(text=wanted, only_open=only_open)
    page = page_of(request, range(total), PAGE_INCIDENTS)
    start = page.rows[0] if page.rows else 0
    context = {
        "incidents": await list_incidents(start, start + PAGE_INCIDENTS, text=wanted, only_open=only_open),
        "q": wanted, "only_open": only_open, "total": total, "page": page.number, "pages": page.pages,
        "kept_days": KEPT.days,
    }  # fmt: skip
    return render(request, "alerts/incidents.html", context)
