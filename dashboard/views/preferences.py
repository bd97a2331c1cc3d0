"""POST /preferences/theme: light, dark, or as the system says. Works without the script."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.accounts.access import Permission, requires
from dashboard.audit.notes import note_nothing
from dashboard.views.accounts.session import safe_target
from dashboard.web.context import THEME_COOKIE, THEMES


@requires(Permission.OPEN)
@require_POST
async def theme(request: HttpRequest) -> HttpResponse:
    note_nothing(request)  # a cookie of this browser
    chosen = request.POST.get("theme", "auto")
    response = redirect(safe_target(request, request.POST.get("back", "")))
    response.set_cookie(
        THEME_COOKIE, chosen if chosen in THEMES else "auto", max_age=365 * 86400, samesite="Lax", path="/"
    )
    return response
