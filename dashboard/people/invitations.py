"""One-time invitations: an administrator chooses the role, who is invited chooses name and password.

Only the hash of the link's secret is kept. A link works once and for three days. All of it blocks.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.access.tokens import hash_secret
from dashboard.models.management import BookingTurn, Invitation, Role, User
from dashboard.people.user_accounts import UserProblem, new_user

LIFE = timedelta(days=3)
OPEN_MAX = 50  # at the same time


def invite(made_by: User, role: Role, label: str, prefixes: tuple[str, ...] = ()) -> tuple[Invitation, str]:
    """Make an invitation; returns it with the secret of its link, which exists nowhere else. Raises UserProblem."""
    if prefixes and role == Role.ADMIN:
        raise UserProblem(gettext("An administrator sees everything: choose another role, or no limit."))
    with transaction.atomic():
        BookingTurn.take()
        if open_invitations().count() >= OPEN_MAX:
            raise UserProblem(
                gettext("%(open_max)s invitations are open, which is the maximum. Withdraw one first.")
                % {"open_max": OPEN_MAX}
            )
        secret = secrets.token_urlsafe(32)
        made = Invitation.objects.create(
            token_hash=hash_secret(secret), role=role, label=label, made_by=made_by, expires_at=timezone.now() + LIFE,
            name_prefixes=" ".join(prefixes),
        )  # fmt: skip
    return made, secret


def facts(role: str, prefixes: tuple[str, ...]) -> dict[str, Any]:
    """What the audit log says of an invitation."""
    return {"role": role} | ({"prefixes": list(prefixes)} if prefixes else {})


def open_invitations() -> QuerySet[Invitation]:
    """Those that would be taken now. One of an account that was closed, or is no administrator any more, is not."""
    return Invitation.objects.filter(
        ended_at=None, expires_at__gt=timezone.now(), made_by__is_active=True, made_by__role=Role.ADMIN
    ).select_related("made_by")


def find(secret: str) -> Invitation | None:
    """The open invitation with this secret."""
    return open_invitations().filter(token_hash=hash_secret(secret)).first()


def accept(secret: str, username: str, password_hash: str) -> User:
    """Use it up and make the account; of many at once one wins. Raises UserProblem."""
    with transaction.atomic():
        invitation = find(secret)
        if invitation is None or not _end(invitation):
            raise UserProblem(gettext("This invitation was used already, withdrawn, or has expired."))
        user = new_user(username, Role(invitation.role))
        user.password, user.name_prefixes = password_hash, invitation.name_prefixes
        user.save()
    return user


def withdraw(invitation_id: int) -> Invitation | None:
    """End one before it is used; None when there is no such open one."""
    invitation = open_invitations().filter(pk=invitation_id).first()
    return invitation if invitation is not None and _end(invitation) else None


def _end(invitation: Invitation) -> bool:
    return Invitation.objects.filter(pk=invitation.pk, ended_at=None).update(ended_at=timezone.now()) == 1
