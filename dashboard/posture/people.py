"""Weaknesses of accounts, tokens, invitations and alarm channels, as the database has them. Blocking."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Q
from django.urls import reverse

from dashboard.alarms.mail import PLAIN
from dashboard.models.alarms import AlarmChannel, ChannelKind
from dashboard.models.management import ApiToken, Invitation, Role, User
from dashboard.posture.finding import Finding
from dashboard.status.problems import Level

UNSEEN = timedelta(days=90)
LONG_LIFE = timedelta(days=180)
ADMINS_MANY = 5
SHOWN_MAX = 100  # findings of a kind
STRONG = (ApiToken.Scope.CONFIG, ApiToken.Scope.ADMIN)


def findings(now: datetime) -> Iterator[Finding]:
    """What an administrator should look at."""
    yield from _accounts(now)
    yield from _tokens(now)
    yield from _invitations(now)
    yield from _channels()


def _accounts(now: datetime) -> Iterator[Finding]:
    unseen = Q(last_login__lt=now - UNSEEN) | Q(last_login=None, created_at__lt=now - UNSEEN)
    for user in User.objects.filter(unseen, is_active=True).order_by("username")[:SHOWN_MAX]:
        seen = f"Last log-in: {user.last_login:%Y-%m-%d}" if user.last_login else f"Made {user.created_at:%Y-%m-%d}"
        yield Finding(
            code="account-unused", level=Level.WARN, title=f"{user.username} has not logged in for {UNSEEN.days} days",
            seen=f"{seen}; {user.get_role_display().lower()}.",
            advice="An account that is not used can be misused without notice. Close it; it can be opened again.",
            href=reverse("person", args=[user.pk]), does="Open the account",
        )  # fmt: skip
    admins = list(User.objects.filter(role=Role.ADMIN, is_active=True).order_by("username"))
    if len(admins) > ADMINS_MANY:
        yield Finding(
            code="many-admins", level=Level.WARN, title=f"{len(admins)} accounts are administrators",
            seen=", ".join(user.username for user in admins[:SHOWN_MAX]),
            advice="Each may manage accounts and change brokers. Give those who need less another role.",
            href=reverse("people"), does="Show people",
        )  # fmt: skip


def _tokens(now: datetime) -> Iterator[Finding]:
    living = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now, user__is_active=True).select_related("user")
    for token in living.order_by("name", "pk")[: SHOWN_MAX * 2]:
        named = f"{token.name} of {token.user.username}"
        place = {"href": reverse("person", args=[token.user.pk]), "does": "Open the account"}
        if token.scope in STRONG and token.expires_at - now > LONG_LIFE:
            yield Finding(
                code="token-long", level=Level.WARN, title=f"A strong token lives long: {named}",
                seen=f"{token.get_scope_display()}; until {token.expires_at:%Y-%m-%d}.",
                advice="Revoke it, and make one for 90 days or of a narrower scope.", **place,
            )  # fmt: skip
        if (token.last_used_at or token.created_at) < now - UNSEEN:
            used = f"Last used {token.last_used_at:%Y-%m-%d}." if token.last_used_at else "It was never used."
            yield Finding(
                code="token-unused", level=Level.WARN, title=f"A token is not used: {named}", seen=used,
                advice="Revoke it: what nothing needs is only of use to a thief.", **place,
            )  # fmt: skip


def _invitations(now: datetime) -> Iterator[Finding]:
    rows = Invitation.objects.filter(ended_at=None, expires_at__gt=now, role=Role.ADMIN).select_related("made_by")
    for row in rows[:SHOWN_MAX]:
        yield Finding(
            code="invitation-admin", level=Level.WARN, title=f"A link that makes an administrator is open: {row.label}",
            seen=f"Made by {row.made_by.username}; it ends {row.expires_at:%Y-%m-%d %H:%M} UTC.",
            advice="Who has the link has the role. Withdraw it if it is not on its way any more.",
            href=reverse("people"), does="Show invitations",
        )  # fmt: skip


def _channels() -> Iterator[Finding]:
    for channel in AlarmChannel.objects.filter(is_on=True)[:SHOWN_MAX]:
        known = channel.known_settings()
        place = {"href": reverse("alarm-channel", args=[channel.pk]), "does": "Change the channel"}
        if channel.kind == ChannelKind.MAIL:
            if known.get("security") == PLAIN:
                yield Finding(
                    code="mail-plain", level=Level.WARN, title=f"Mail goes out unencrypted: {channel.name}",
                    seen=f"{known.get('host')} without TLS.", advice="Use STARTTLS or TLS.", **place,
                )  # fmt: skip
        elif urlsplit(known["url"]).scheme == "http":
            yield Finding(
                code="hook-plain", level=Level.WARN, title=f"Notices go out unencrypted: {channel.name}",
                seen=f"http to {urlsplit(known['url']).netloc}.", advice="Use https.", **place,
            )  # fmt: skip
