"""Whether the head of a request carries a session or an API token that is good now.

Asked before a large body is read, and before a request takes a turn; what it may do is decided later, by `access`.
"""

from __future__ import annotations

from collections.abc import Callable

from channels.db import database_sync_to_async
from django.conf import settings
from django.http import parse_cookie

from dashboard.access.permissions import account_of_session, principal_of
from dashboard.access.tokens import find_token

SECRET_CHARS_MAX = 256
TOKEN, SESSION = "token ", "session "


def credential_of(first: Callable[[bytes], str]) -> str:
    """What there is to look up, "" for nothing. first: a header's first value by its name in small letters, or ""."""
    kind, _, secret = first(b"authorization").partition(" ")
    secret = secret.strip()
    if kind.lower() == "bearer" and 0 < len(secret) <= SECRET_CHARS_MAX:
        return TOKEN + secret
    key = parse_cookie(first(b"cookie")).get(settings.SESSION_COOKIE_NAME, "")
    return SESSION + key if 0 < len(key) <= SECRET_CHARS_MAX else ""


async def is_good(credential: str) -> bool:
    """Look it up, off the loop."""
    if credential.startswith(TOKEN):
        token = await find_token(credential.removeprefix(TOKEN))
        return token is not None and principal_of(token.user, token) is not None
    return await database_sync_to_async(account_of_session)(credential.removeprefix(SESSION)) is not None
