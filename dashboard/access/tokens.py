"""API tokens: made, shown once, found again by their hash.

A token is `gmq_` and 43 random characters (256 bits), so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.models.management import ApiToken, User
from gantrymq.errors import GantryError

TOKEN_START = "gmq_"
TOKENS_MAX = 50  # living ones of one account
SHOWN_ONCE_S, SHOWN_ONCE_MAX = 60.0, 100
TOKEN_LIFE_DAYS = (7, 30, 90, 365)  # what the page offers; every token ends
LAST_USED_STEP = timedelta(minutes=1)  # not a write to the database at every call


def hash_secret(secret: str) -> str:
    """SHA-256 in hex, as tables keep it."""
    return hashlib.sha256(secret.encode()).hexdigest()


class TooManyTokens(GantryError):
    """The account has as many living tokens as it may."""


def living_tokens(user: User) -> QuerySet[ApiToken]:
    """The account's tokens that are neither revoked nor over, the newest first."""
    return ApiToken.objects.filter(user=user, revoked_at=None, expires_at__gt=timezone.now())


async def create_token(user: User, name: str, scope: str, life_days: int) -> tuple[ApiToken, str]:
    """Make a token; returns its row and the secret, which exists nowhere else. Raises TooManyTokens."""
    if await living_tokens(user).acount() >= TOKENS_MAX:
        raise TooManyTokens(
            gettext("%(tokens_max)s tokens is the maximum. Revoke one first.") % {"tokens_max": TOKENS_MAX}
        )
    secret = TOKEN_START + secrets.token_urlsafe(32)
    token = await ApiToken.objects.acreate(
        user=user,
        name=name,
        scope=scope,
        prefix=secret[:10],
        token_hash=hash_secret(secret),
        expires_at=timezone.now() + timedelta(days=life_days),
    )
    return token, secret


async def find_token(secret: str) -> ApiToken | None:
    """The living token with this secret, its account loaded; None when unknown, revoked or expired."""
    now = timezone.now()
    token = (
        await ApiToken.objects.select_related("user")
        .filter(token_hash=hash_secret(secret), revoked_at=None, expires_at__gt=now)
        .afirst()
    )
    if token is not None and (token.last_used_at is None or now - token.last_used_at > LAST_USED_STEP):
        await ApiToken.objects.filter(pk=token.pk).aupdate(last_used_at=now)
    return token


async def revoke_token(user: User, token_id: int) -> bool:
    """End one of the account's tokens; False when it has no such living token."""
    changed = await ApiToken.objects.filter(pk=token_id, user=user, revoked_at=None).aupdate(revoked_at=timezone.now())
    return changed == 1


class ShownOnce:
    """Secrets on their way from the form that made them to the page that shows them: in memory, each for one look.

    So that loading that page again makes no other token.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[tuple[int, str], tuple[str, float]] = {}

    def put(self, user: User, secret: str) -> str:
        """Keep it for a moment; returns the key for `take`."""
        while len(self._kept) >= SHOWN_ONCE_MAX:
            del self._kept[next(iter(self._kept))]
        key = secrets.token_urlsafe(12)
        self._kept[user.pk, key] = (secret, self._clock() + SHOWN_ONCE_S)
        return key

    def take(self, user: User, key: str) -> str | None:
        """The secret, to its owner, the first time only."""
        secret, until = self._kept.pop((user.pk, key), (None, 0.0))
        return secret if self._clock() < until else None


shown_once = ShownOnce()
