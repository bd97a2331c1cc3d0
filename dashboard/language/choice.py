"""Which language a request is answered in: the account's, else the browser's cookie, else what the browser asks for.

Programs get English: REST, /metrics, the shell and logs are the same in every language.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.cookie import parse_cookie
from django.utils import translation

PLAIN = "en"  # the language of the texts in the source
TAGS = {"en": "en", "zh-hans": "zh-CN"}  # as <html lang> has it


def languages() -> tuple[str, ...]:
    return tuple(code for code, _ in settings.LANGUAGES)


def html_tag(language: str | None) -> str:
    return TAGS.get(language or PLAIN, PLAIN)


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
