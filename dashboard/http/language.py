"""Each request in its language; programs get English."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponseBase
from django.utils import translation

from dashboard.http.middleware import AsyncMiddleware
from dashboard.language.choice import PLAIN

FOR_PROGRAMS = ("/api/", "/metrics", "/healthz", "/readyz")
FOR_PEOPLE = ("/api/v1/docs",)


class LanguageMiddleware(AsyncMiddleware):
    """Answers each request in its language; `speak` takes the account's as soon as it is known."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_for_programs = request.path.startswith(FOR_PROGRAMS) and not request.path.startswith(FOR_PEOPLE)
        is_program = is_for_programs or "Authorization" in request.headers
        language = PLAIN if is_program else translation.get_language_from_request(request)
        request.speaks_plainly = is_program  # type: ignore[attr-defined]
        with translation.override(language):
            return await super().__call__(request)
