"""Browsers that have logged in before are known by a signed cookie, and have a count of wrong tries of their own.

So a stranger's guesses never lock out somebody who has been here (OWASP calls it a device cookie). The cookie opens
nothing: it names a random number and the accounts that this browser has logged in to, and holds for these only.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponse, parse_cookie
from django.urls import reverse

from dashboard.http.client_address import client_address, counted_address

LIFE_S = 90 * 86400
ACCOUNTS_MAX = 8  # that one browser is known for; the oldest is forgotten
_SALT = "dashboard.known_browsers"  # part of every cookie that browsers hold: it stays, wherever this module stands


@dataclass(frozen=True, slots=True)
class Source:
    """Where a log-in comes from, as limits count it: a known browser, or else an address."""

    key: str
    is_known: bool


def account_key(username: str) -> str:
    """One name, however it is typed; cut to what a table keeps."""
    return username.strip().lower()[:64]


def source_of(request: HttpRequest, username: str) -> Source:
    """The browser when it has logged in to this account before, else the address."""
    browser, accounts = _read(request.COOKIES)
    if browser and account_key(username) in accounts:
        return Source(f"browser:{browser}", is_known=True)
    return counted_source(client_address(request))


def counted_source(address: str) -> Source:
    """A stranger's source."""
    return Source(counted_address(address)[:64], is_known=False)


def browser_of_cookies(header: str) -> str:
    """The browser's number in a Cookie header; empty when it has not logged in before."""
    return _read(parse_cookie(header))[0]


def remember(request: HttpRequest, response: HttpResponse, username: str) -> None:
    """From now on the browser is known for this account."""
    browser, accounts = _read(request.COOKIES)
    key = account_key(username)
    content = {
        "browser": browser or secrets.token_urlsafe(16),
        "accounts": [*(name for name in accounts if name != key), key][-ACCOUNTS_MAX:],
    }
    response.set_cookie(
        settings.KNOWN_BROWSER_COOKIE_NAME,
        signing.dumps(content, salt=_SALT),
        max_age=LIFE_S,
        path=reverse("login"),
        secure=request.is_secure(),
        httponly=True,
        samesite="Strict",
    )


def _read(cookies: Mapping[str, str]) -> tuple[str, list[str]]:
    """The browser's number and its accounts; empty when the cookie is missing, too old or not ours."""
    text = cookies.get(settings.KNOWN_BROWSER_COOKIE_NAME, "")
    try:
        content = signing.loads(text, salt=_SALT, max_age=LIFE_S)
    except signing.BadSignature:
        return "", []
    return content["browser"], content["accounts"]
