"""Accounts as an administrator handles them: make, change role and password, see and end sessions.

Everything takes effect at once, in a running appliance too: pages look at account and session with each request, live
sockets every few seconds. All of it blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.access import lockout
from dashboard.access.permissions import SESSION_ADDRESS, SESSION_LIFE_S, SESSION_STARTED, SESSION_TOUCHED
from dashboard.limits.names import BadPrefix, read_prefixes
from dashboard.models.identities import Identity
from dashboard.models.management import ApiToken, BookingTurn, Role, User
from dashboard.people.new_names import check_new_name
from gantrymq.errors import GantryError

SESSION_ID_CHARS = 10


class UserProblem(GantryError):
    """It can't be done; the text says why."""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """One log-in that still holds. id: names it without being its key."""

    id: str
    key: str
    username: str
    address: str
    started_at: datetime
    seen_at: datetime  # to within a few minutes
    ends_at: datetime


def find_user(name: str) -> User:
    user = User.objects.filter(username__iexact=name).first()
    if user is None:
        known = ", ".join(User.objects.order_by("username").values_list("username", flat=True)[:20])
        raise UserProblem(
            gettext("there is no account %(name)s; there are: %(value)s")
            % {"name": f"{name!r}", "value": known or "none"}
        )
    return user


def as_role(name: str) -> Role:
    try:
        return Role(name)
    except ValueError:
        raise UserProblem(
            gettext("there is no role %(name)s; there are: %(values)s")
            % {"name": f"{name!r}", "values": ", ".join(Role.values)}
        ) from None


def check_password(user: User, password: str) -> None:
    """Raises UserProblem when the rules refuse it."""
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise UserProblem(" ".join(exc.messages)) from exc


def new_user(name: str, role: Role) -> User:
    """An account that is not saved yet; raises UserProblem for a name that can't be taken."""
    user = User(username=name, role=role)
    try:
        user.clean_fields(exclude=["password"])
        check_new_name(name)
    except ValidationError as exc:
        raise UserProblem(" ".join(exc.messages)) from exc
    if User.objects.filter(username__iexact=name).exists():
        raise UserProblem(gettext("there is an account %(name)s already") % {"name": f"{name!r}"})
    return user


def add_user(user: User, password: str) -> None:
    """Save an account of `new_user`."""
    check_password(user, password)
    user.set_password(password)
    with transaction.atomic():
        if User.objects.filter(username__iexact=user.username).exists():
            raise UserProblem(gettext("there is an account %(username)s already") % {"username": f"{user.username!r}"})
        user.save()


def set_role(user: User, role: Role) -> None:
    """Give the account another role. The last administrator stays one."""
    with transaction.atomic():
        BookingTurn.take()
        if role != Role.ADMIN:
            _check_not_last(user)
        if role == Role.ADMIN and user.prefixes:
            raise UserProblem(
                gettext("%(username)s is limited to some names: remove that limit first") % {"username": user.username}
            )
        User.objects.filter(pk=user.pk).update(role=role)


def set_prefixes(user: User, prefixes: tuple[str, ...]) -> None:
    """Limit the account to topics and groups whose names begin so; () takes the limit away."""
    with transaction.atomic():
        if prefixes and User.objects.filter(pk=user.pk, role=Role.ADMIN).exists():
            raise UserProblem(
                gettext("%(username)s is an administrator, who sees everything: choose another role first")
                % {"username": user.username}
            )
        User.objects.filter(pk=user.pk).update(name_prefixes=" ".join(prefixes))


def as_prefixes(text: str) -> tuple[str, ...]:
    try:
        return read_prefixes(text)
    except BadPrefix as exc:
        raise UserProblem(str(exc)) from exc


def close_account(user: User) -> int:
    """No log-in and no token from now on. Returns how many sessions ended. The last administrator stays open."""
    with transaction.atomic():
        BookingTurn.take()
        _check_not_last(user)
        User.objects.filter(pk=user.pk).update(is_active=False)
        return end_sessions(open_sessions(user))


def _check_not_last(user: User) -> None:
    """Raises UserProblem for the last administrator with a password: who signs in with a provider needs that one up."""
    others = User.objects.filter(role=Role.ADMIN, is_active=True, identity=None).exclude(pk=user.pk)
    if user.role == Role.ADMIN and not issuer_of(user) and not others.exists():
        raise UserProblem(
            gettext("%(username)s is the last administrator with a password: create another one first")
            % {"username": user.username}
        )


def issuer_of(user: User) -> str:
    """The provider that the account signs in with; "" when it has a password here. Blocking."""
    return Identity.objects.filter(user=user).values_list("issuer", flat=True).first() or ""


def open_account(user: User) -> None:
    """It may log in again; tokens that have not ended work again."""
    User.objects.filter(pk=user.pk).update(is_active=True)


def reset_password(user: User, password: str, *, revoke_tokens: bool = False) -> tuple[int, int]:
    """A new password: sessions end, wrong tries are forgotten. Returns how many sessions and tokens ended."""
    if issuer := issuer_of(user):
        raise UserProblem(
            gettext("%(username)s signs in with %(issuer)s and has no password here")
            % {"username": user.username, "issuer": issuer}
        )
    check_password(user, password)
    user.set_password(password)
    with transaction.atomic():
        user.save(update_fields=["password"])
        ended = end_sessions(open_sessions(user))
        lockout.forget(account=user.username)
        revoked = 0
        if revoke_tokens:
            revoked = ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    return ended, revoked


def change_password(user: User, password_hash: str) -> int:
    """A password that its owner chose, hashed: all sessions end. Returns how many."""
    user.password = password_hash
    with transaction.atomic():
        user.save(update_fields=["password"])
        return end_sessions(open_sessions(user))


def open_sessions(user: User | None = None) -> list[OpenSession]:
    """The sessions that hold, newest first; of one account if asked."""
    names = dict(User.objects.values_list("pk", "username"))
    found = [item for item in _sessions(names) if user is None or item.username == user.username]
    return sorted(found, key=lambda item: item.started_at, reverse=True)


def end_sessions(sessions: Iterable[OpenSession]) -> int:
    """Log them out; returns how many there were still."""
    return sum(Session.objects.filter(session_key=item.key).delete()[0] for item in sessions)


def _sessions(names: dict[int, str]) -> Iterator[OpenSession]:
    now = timezone.now()
    for row in Session.objects.filter(expire_date__gt=now).iterator():
        content = row.get_decoded()
        owner, started = content.get(SESSION_KEY), content.get(SESSION_STARTED, 0)
        if owner is None or int(owner) not in names or now.timestamp() - started > SESSION_LIFE_S:
            continue
        yield OpenSession(
            id=hashlib.sha256(row.session_key.encode()).hexdigest()[:SESSION_ID_CHARS],
            key=row.session_key,
            username=names[int(owner)],
            address=content.get(SESSION_ADDRESS, "unknown"),
            started_at=datetime.fromtimestamp(started, UTC),
            seen_at=datetime.fromtimestamp(content.get(SESSION_TOUCHED, started), UTC),
            ends_at=min(row.expire_date, datetime.fromtimestamp(started + SESSION_LIFE_S, UTC)),
        )
