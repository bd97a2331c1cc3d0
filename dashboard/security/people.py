"""Weaknesses of accounts, tokens, invitations and alarm channels, as the database has them. Blocking."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TypedDict
from urllib.parse import urlsplit

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.alerts.sending.channel_kinds import KINDS
from dashboard.alerts.sending.mail import PLAIN
from dashboard.models.alerts import AlertChannel, ChannelKind
from dashboard.models.management import ApiToken, Invitation, Role, User
from dashboard.status.check import Check, Level

UNSEEN = timedelta(days=90)
LONG_LIFE = timedelta(days=180)
ADMINS_MANY = 5
SHOWN_MAX = 100  # of a kind
STRONG = (ApiToken.Scope.CONFIG, ApiToken.Scope.ADMIN)


class Page(TypedDict):
    """Where what a check found is changed."""

    link: str
    link_text: str


def checks(now: datetime) -> Iterator[Check]:
    """What an administrator should look at."""
    yield from _accounts(now)
    yield from _tokens(now)
    yield from _invitations(now)
    yield from _channels()


def _accounts(now: datetime) -> Iterator[Check]:
    unseen = Q(last_login__lt=now - UNSEEN) | Q(last_login=None, created_at__lt=now - UNSEEN)
    for user in User.objects.filter(unseen, is_active=True).order_by("username")[:SHOWN_MAX]:
        seen = (
            gettext("Last log-in: %(last_login)s") % {"last_login": f"{user.last_login:%Y-%m-%d}"}
            if user.last_login
            else gettext("Created %(created_at)s") % {"created_at": f"{user.created_at:%Y-%m-%d}"}
        )
        yield Check(
            name="account-unused",
            level=Level.WARN,
            title=gettext("%(username)s has not logged in for %(days)s days")
            % {"username": user.username, "days": UNSEEN.days},
            evidence=f"{seen}; {user.get_role_display().lower()}.",
            action=gettext("An unused account can be misused unnoticed. Close it; you can open it again."),
            link=reverse("person", args=[user.pk]),
            link_text=gettext("Open the account"),
        )
    admins = list(User.objects.filter(role=Role.ADMIN, is_active=True).order_by("username"))
    if len(admins) > ADMINS_MANY:
        yield Check(
            name="many-admins",
            level=Level.WARN,
            title=gettext("%(admins)s accounts are administrators") % {"admins": len(admins)},
            evidence=", ".join(user.username for user in admins[:SHOWN_MAX]),
            action=gettext(
                "Each of them can manage accounts and change brokers. Give those who need less another role."
            ),
            link=reverse("people"),
            link_text=gettext("Show users"),
        )


def _tokens(now: datetime) -> Iterator[Check]:
    living = ApiToken.objects.filter(revoked_at=None, expires_at__gt=now, user__is_active=True).select_related("user")
    for token in living.order_by("name", "pk")[: SHOWN_MAX * 2]:
        named = gettext("%(token)s of %(account)s") % {"token": token.name, "account": token.user.username}
        place = Page(link=reverse("person", args=[token.user.pk]), link_text=gettext("Open the account"))
        if token.scope in STRONG and token.expires_at - now > LONG_LIFE:
            yield Check(
                name="token-long",
                level=Level.WARN,
                title=gettext("A token with wide scope is valid for long: %(named)s") % {"named": named},
                evidence=gettext("%(scope)s; until %(expires_at)s.")
                % {"scope": token.get_scope_display(), "expires_at": f"{token.expires_at:%Y-%m-%d}"},
                action=gettext("Revoke it, and create one for 90 days or with a narrower scope."),
                **place,
            )
        if (token.last_used_at or token.created_at) < now - UNSEEN:
            used = (
                gettext("Last used %(last_used_at)s.") % {"last_used_at": f"{token.last_used_at:%Y-%m-%d}"}
                if token.last_used_at
                else gettext("It was never used.")
            )
            yield Check(
                name="token-unused",
                level=Level.WARN,
                title=gettext("An unused token: %(named)s") % {"named": named},
                evidence=used,
                action=gettext("Revoke unused tokens: they are a risk without a benefit."),
                **place,
            )


def _invitations(now: datetime) -> Iterator[Check]:
    rows = Invitation.objects.filter(ended_at=None, expires_at__gt=now, role=Role.ADMIN).select_related("made_by")
    for row in rows[:SHOWN_MAX]:
        yield Check(
            name="invitation-admin",
            level=Level.WARN,
            title=gettext("An invitation for an administrator is open: %(label)s") % {"label": row.label},
            evidence=gettext("Created by %(username)s; it expires %(expires_at)s UTC.")
            % {"username": row.made_by.username, "expires_at": f"{row.expires_at:%Y-%m-%d %H:%M}"},
            action=gettext("Anyone with the link has the role. Withdraw it if it was not delivered."),
            link=reverse("people"),
            link_text=gettext("Show invitations"),
        )


def _channels() -> Iterator[Check]:
    for channel in AlertChannel.objects.filter(is_on=True)[:SHOWN_MAX]:
        known = channel.known_settings()
        place = Page(link=reverse("alert-channel", args=[channel.pk]), link_text=gettext("Change the channel"))
        if channel.kind == ChannelKind.MAIL:
            if known.get("security") == PLAIN:
                yield Check(
                    name="mail-plain",
                    level=Level.WARN,
                    title=gettext("Mail is sent unencrypted: %(name)s") % {"name": channel.name},
                    evidence=gettext("%(host)s without TLS.") % {"host": known.get("host")},
                    action=gettext("Use STARTTLS or TLS."),
                    **place,
                )
        elif urlsplit(address := KINDS[channel.kind].address(known)).scheme == "http":
            yield Check(
                name="hook-plain",
                level=Level.WARN,
                title=gettext("Notifications are sent unencrypted: %(name)s") % {"name": channel.name},
                evidence=gettext("http to %(netloc)s.") % {"netloc": urlsplit(address).netloc},
                action=gettext("Use https."),
                **place,
            )
