"""GET /healthz: the web process answers. Open to all, so it says nothing else."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires


@requires(Permission.OPEN)
@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")
