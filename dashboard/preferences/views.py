"""How pages look to a person: light or dark, the language, the zone of times. All work without the script."""

from __future__ import annotations

import gzip

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import translation
from django.views.decorators.cache import cache_control
from django.views.i18n import JavaScriptCatalog

from dashboard.access.permissions import ACT, Permission, requires
from dashboard.audit.notes import note_nothing
from dashboard.language.choice import PLAIN, languages
from dashboard.models.management import Times, User
from dashboard.sign_in.views import safe_target
from dashboard.web.context import THEME_COOKIE, THEMES


@requires(Permission.OPEN, ACT)
async def theme(request: HttpRequest) -> HttpResponse:
    """Light, dark, or as the system says: a cookie of this browser."""
    note_nothing(request)
    chosen = request.POST.get("theme", "auto")
    return _back_with_cookie(request, THEME_COOKIE, chosen if chosen in THEMES else "auto")


@requires(Permission.OPEN, ACT)
async def language(request: HttpRequest) -> HttpResponse:
    """Kept with the account, so that it is the same in each browser; before log-in in a cookie only."""
    note_nothing(request)  # how the pages look for one person
    chosen = request.POST.get("language", "")
    if chosen not in languages():
        return redirect(safe_target(request, request.POST.get("back", "")))
    principal = request.principal  # type: ignore[attr-defined]
    if principal is not None:
        await User.objects.filter(pk=principal.user.pk).aupdate(language=chosen)
    return _back_with_cookie(request, settings.LANGUAGE_COOKIE_NAME, chosen)


def _back_with_cookie(request: HttpRequest, name: str, value: str) -> HttpResponse:
    response = redirect(safe_target(request, request.POST.get("back", "")))
    response.set_cookie(name, value, max_age=365 * 86400, samesite="Lax", path="/")
    return response


@requires(Permission.ACCOUNT, ACT)
async def times(request: HttpRequest) -> HttpResponse:
    """UTC, the browser's own zone, or both: kept with the account, and changes nothing for others."""
    note_nothing(request)
    chosen = request.POST.get("times", "")
    if chosen in Times.values:
        user = request.principal.user  # type: ignore[attr-defined]
        await User.objects.filter(pk=user.pk).aupdate(times=chosen)
    return redirect(safe_target(request, request.POST.get("back", "")))


@requires(Permission.OPEN)
@cache_control(public=True, max_age=365 * 86400, immutable=True)
async def words(request: HttpRequest, language: str, version: str) -> HttpResponse:
    """GET /words/<language>/<version>.js: gettext for the scripts, and their texts. A new text has a new version."""
    with translation.override(language if language in languages() else PLAIN):
        response = JavaScriptCatalog().get(request)
    response.headers["Vary"] = "Accept-Encoding"
    if "gzip" in request.headers.get("Accept-Encoding", ""):  # it has no secret that a length could give away
        response.content = gzip.compress(response.content, mtime=0)
        response.headers["Content-Encoding"] = "gzip"
    return response


words.is_static = True  # type: ignore[attr-defined]  # no session is looked up for it
