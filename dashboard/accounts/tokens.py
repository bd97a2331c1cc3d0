"""API tokens: made, shown once, found again by their hash.

A token is `gmq_` and 43 random characters (256 bits), so a plain SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.utils import timezone

from dashboard.models.management import ApiToken, User

TOKEN_START = "gmq_"
TOKEN_LIFE_DAYS = (7, 30, 90, 365)  # what the page offers; every token ends
LAST_USED_STEP = timedelta(minutes=1)  # not a write to the database at every call


def hash_secret(secret: str) -> str:
    """SHA-256 in hex, as tables keep it."""
    return hashlib.sha256(secret.encode()).hexdigest()


async def create_token(user: User, name: str, scope: str, life_days: int) -> tuple[ApiToken, str]:
    """Make a token; returns its row and the secret, which exists nowhere else."""
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
