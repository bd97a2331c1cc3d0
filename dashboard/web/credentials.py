"""Whether the head of a request carries a session or an API token that is good now.

Asked only for large bodies, before they are read; what the request may do is decided later, by `access`.
"""

from __future__ import annotations

from channels.db import database_sync_to_async
from django.conf import settings
from django.http import parse_cookie
from twisted.web.http_headers import Headers

from dashboard.accounts.access import account_of_session, principal_of
from dashboard.accounts.tokens import find_token

SECRET_CHARS_MAX = 256


def may_be_known(headers: Headers) -> bool:
    """Whether there is anything to look up."""
    return bool(_token(headers) or _session_key(headers))


async def is_known(headers: Headers) -> bool:
    """Look it up, off the loop."""
    if secret := _token(headers):
        token = await find_token(secret)
        return token is not None and principal_of(token.user, token) is not None
    return await database_sync_to_async(account_of_session)(_session_key(headers)) is not None


def _token(headers: Headers) -> str:
    kind, _, secret = _first(headers, b"Authorization").partition(" ")
    secret = secret.strip()
    return secret if kind.lower() == "bearer" and len(secret) <= SECRET_CHARS_MAX else ""


def _session_key(headers: Headers) -> str:
    key = parse_cookie(_first(headers, b"Cookie")).get(settings.SESSION_COOKIE_NAME, "")
    return key if len(key) <= SECRET_CHARS_MAX else ""


def _first(headers: Headers, name: bytes) -> str:
    values = headers.getRawHeaders(name)
    return values[0].decode("latin-1") if values else ""
