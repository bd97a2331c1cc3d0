"""What every page's frame needs: who is there, the navigation, the theme, the zone of times, the server's clock."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from dashboard.access.permissions import Permission, Principal
from dashboard.language.choice import html_tag
from dashboard.language.compiled import words_version
from dashboard.models.management import Times
from dashboard.status.board import board
from dashboard.status.waiting import PAGES, waiting

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "gantry_theme"
WORDS_VERSION = words_version()


@dataclass(frozen=True, slots=True)
class NavEntry:
    """One line of the navigation. key: the first part of the address, which marks the current entry.

    waiting: how many problems or messages wait there, 0 is not shown; None: nothing ever does.
    """

    key: str
    label: str | Promise
    href: str
    icon: str
    waiting: int | None = None


@dataclass(frozen=True, slots=True)
class NavSection:
    """A heading of the navigation, and the pages below it."""

    label: str | Promise
    entries: list[NavEntry]


_SECTIONS = (
    (_("Look"), (
        ("", _("Overview"), "overview", "overview", Permission.CLUSTER_READ),
        ("topics", _("Topics"), "topics", "topics", Permission.TOPICS_READ),
        ("groups", _("Groups"), "groups", "groups", Permission.GROUPS_READ),
        ("traces", _("Traces"), "traces", "route", Permission.MESSAGES_READ),
        ("clients", _("Clients"), "clients", "clients", Permission.CLUSTER_READ),
        ("brokers", _("Brokers"), "brokers", "brokers", Permission.CLUSTER_READ),
    )),
    (_("Repair"), (
        ("alerts", _("Alerts"), "alerts", "bell", Permission.CLUSTER_READ),
        ("dead-letters", _("Dead letters"), "dead-letters", "dead", Permission.MESSAGES_READ),
    )),
    (_("History"), (
        ("reports", _("Reports"), "reports:index", "reports", Permission.REPORTS_READ),
        ("audit", _("Audit"), "audit", "audit", Permission.AUDIT_READ),
    )),
    (_("Set up"), (
        ("connect", _("Connect"), "connect", "connect", Permission.CLUSTER_READ),
        ("security", _("Security"), "security", "shield", Permission.USERS_WRITE),
        ("people", _("Users"), "people", "people", Permission.USERS_WRITE),
        ("tokens", _("API tokens"), "tokens", "tokens", Permission.ACCOUNT),
        ("definitions", _("Definitions"), "definitions", "definitions", Permission.CONFIG_WRITE),
    )),
)  # fmt: skip
_PART_OF = {"topic": "topics", "group": "groups", "trace": "traces", "broker": "brokers", "name-server": "brokers"}


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Template context of the frame around each page."""
    principal = getattr(request, "principal", None)
    section = request.path.split("/")[1]
    navigation = navigation_of(principal)
    waiting_of = {one.key: one.waiting for part in navigation for one in part.entries}
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return {
        "principal": principal,
        "section": _PART_OF.get(section, section),
        "theme": theme if theme in THEMES else "auto",
        "page_language": get_language(),
        "language_tag": html_tag(get_language()),
        "page_languages": settings.LANGUAGES,
        "words_version": WORDS_VERSION,
        "times": principal.user.times if principal is not None else Times.BOTH,
        "now_s": f"{time.time():.3f}",
        "navigation": navigation,
        "alerts_waiting": waiting_of.get("alerts"),
    }


def navigation_of(principal: Principal | None) -> list[NavSection]:
    """The pages that the account may open, below their headings."""
    if principal is None:
        return []
    counts = waiting(board)
    sections = (
        NavSection(
            label,
            [
                NavEntry(key, name, reverse(view), icon, counts.get(key, 0) if key in PAGES else None)
                for key, name, view, icon, permission in entries
                if principal.may(permission)
            ],
        )
        for label, entries in _SECTIONS
    )
    return [section for section in sections if section.entries]
