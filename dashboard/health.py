"""For programs that start and stop this one, open to all, so they say nothing else.

GET /healthz   the web process answers; otherwise it should be started again
GET /readyz    the appliance serves: its processes run, its database opens; otherwise it should get no visitors
"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.access.permissions import Permission, requires
from dashboard.database.state import state
from dashboard.status.processes import not_running


@requires(Permission.OPEN)
@require_safe
async def healthz(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok\n", content_type="text/plain")


@requires(Permission.OPEN)
@require_safe
async def readyz(request: HttpRequest) -> HttpResponse:
    why = ["database"] if state.why else []
    why += sorted({process.role for process in not_running()})
    text = f"not ready: {', '.join(why)}\n" if why else "ok\n"
    return HttpResponse(text, content_type="text/plain", status=503 if why else 200)
