"""Recognises browsers that have logged in before by a signed cookie; their wrong passwords are counted separately.

So an attacker's guesses can't lock out the users themselves (OWASP calls it a device cookie). The cookie gives no
access: it contains a random number and the accounts to which this browser has logged in, and is used for these only.
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
    """The source of an unknown browser: its address."""
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
    """The browser's number and its accounts; empty for a missing, expired or wrongly signed cookie."""
    text = cookies.get(settings.KNOWN_BROWSER_COOKIE_NAME, "")
    try:
        content = signing.loads(text, salt=_SALT, max_age=LIFE_S)
    except signing.BadSignature:
        return "", []
    return content["browser"], content["accounts"]
