"""Which language a request is answered in: the account's, else the browser's cookie, else what the browser asks for.

Programs get English: REST, /metrics, the shell and logs are the same in every language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.http.cookie import parse_cookie
from django.utils import translation

from dashboard.http.middleware import AsyncMiddleware

PLAIN = "en"  # the language of the texts in the source
TAGS = {"en": "en", "zh-hans": "zh-CN"}  # as <html lang> has it
FOR_PROGRAMS = ("/api/", "/metrics", "/healthz")
FOR_PEOPLE = ("/api/v1/docs",)


def languages() -> tuple[str, ...]:
    return tuple(code for code, _ in settings.LANGUAGES)


def html_tag(language: str | None) -> str:
    return TAGS.get(language or PLAIN, PLAIN)


class LanguageMiddleware(AsyncMiddleware):
    """Answers each request in its language; `speak` takes the account's as soon as it is known."""

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_for_programs = request.path.startswith(FOR_PROGRAMS) and not request.path.startswith(FOR_PEOPLE)
        is_program = is_for_programs or "Authorization" in request.headers
        language = PLAIN if is_program else translation.get_language_from_request(request)
        request.speaks_plainly = is_program  # type: ignore[attr-defined]
        with translation.override(language):
            return await super().__call__(request)


def speak(request: HttpRequest, chosen: str) -> None:
    """From now on in the account's language, if it chose one and a person asks."""
    if chosen in languages() and not getattr(request, "speaks_plainly", False):
        translation.activate(chosen)


def language_of_socket(scope: Mapping[str, Any], chosen: str) -> str:
    """The language of a live socket: by the same rules as its page's."""
    if chosen in languages():
        return chosen
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", [])}
    request = HttpRequest()
    request.COOKIES = parse_cookie(headers.get("cookie", ""))
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get("accept-language", "")
    return translation.get_language_from_request(request)
