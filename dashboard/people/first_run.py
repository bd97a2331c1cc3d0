"""Creates the first administrator with a one-time token from the terminal.

Only the token's hash is stored. It is valid for 30 minutes; as long as there is no administrator, each start of the
appliance makes a new one and invalidates the old. Afterwards the page always answers 403.
"""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.access.tokens import hash_secret
from dashboard.models.management import Role, SetupToken, User
from gantrymq.errors import GantryError

logger = logging.getLogger(__name__)

TOKEN_LIFE = timedelta(minutes=30)


class SetupRefused(GantryError):
    """The first administrator can't be made with this token; the text says why."""


def admin_exists() -> bool:
    return User.objects.filter(role=Role.ADMIN).exists()


def issue_setup_token() -> str | None:
    """A fresh token for /first-run?token=…, None when an administrator exists.

    Blocking; the database must be migrated.
    """
    with transaction.atomic():
        if admin_exists():
            return None
        SetupToken.objects.all().delete()
        token = secrets.token_urlsafe(24)
        SetupToken.objects.create(token_hash=hash_secret(token), expires_at=timezone.now() + TOKEN_LIFE)
    return token


def token_opens(token: str) -> bool:
    """Whether the token would be taken now."""
    return (
        not admin_exists()
        and SetupToken.objects.filter(
            token_hash=hash_secret(token), used_at=None, expires_at__gt=timezone.now()
        ).exists()
    )


def claim(token: str, username: str, password_hash: str) -> User:
    """Use the token up and make the administrator; of many at once one wins. Raises SetupRefused. Blocking."""
    with transaction.atomic():  # SQLite: BEGIN IMMEDIATE, so claims queue up here
        now = timezone.now()
        taken = SetupToken.objects.filter(token_hash=hash_secret(token), used_at=None, expires_at__gt=now).update(
            used_at=now
        )
        if taken != 1:
            raise SetupRefused(
                gettext("This set-up link was used already, has expired, or belongs to another appliance.")
            )
        if admin_exists():
            raise SetupRefused(gettext("This appliance has an administrator already."))
        user = User.objects.create(username=username, password=password_hash, role=Role.ADMIN)
    logger.info("first administrator created", extra={"event": "first_admin_created", "username": user.username})
    return user
