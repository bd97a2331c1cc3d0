"""What every page's frame needs: who is there, the navigation, the theme, the zone of times, the server's clock."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
    """One line of the navigation, or a tab. key: the first part of the address, which marks the current entry.

    waiting: how many problems or messages wait there, 0 is not shown; None: nothing ever does. tabs: the pages of an
    entry that has several, of which it opens the first.
    """

    key: str
    label: str | Promise
    href: str
    icon: str
    waiting: int | None = None
    tabs: tuple[NavEntry, ...] = ()


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
        ("traces", _("Messages and traces"), "traces", "route", Permission.MESSAGES_READ),
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
        ("access", _("Access"), "", "people", None),
        ("settings", _("Settings"), "", "settings", None),
    )),
)  # fmt: skip
_TABS = {
    "access": (
        ("users", _("Users"), "people", Permission.USERS_WRITE),
        ("tokens", _("API tokens"), "tokens", Permission.ACCOUNT),
        ("accounts", _("Broker accounts"), "accounts", Permission.CONFIG_WRITE),
    ),
    "settings": (
        ("settings", _("Brokers"), "settings", Permission.CONFIG_WRITE),
        ("security", _("Security"), "security", Permission.USERS_WRITE),
        ("name-server", _("Key-value table"), "name-server-entries", Permission.CONFIG_WRITE),
        ("definitions", _("Definitions"), "definitions", Permission.CONFIG_WRITE),
    ),
}  # fmt: skip
_PART_OF = {"topic": "topics", "group": "groups", "trace": "traces", "messages": "traces", "broker": "brokers"} | {
    tab[0]: entry for entry, tabs in _TABS.items() for tab in tabs
}


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Template context of the frame around each page."""
    principal = getattr(request, "principal", None)
    page = request.path.split("/")[1]
    section = _PART_OF.get(page, page)
    navigation = navigation_of(principal)
    entries = {one.key: one for part in navigation for one in part.entries}
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return {
        "principal": principal,
        "section": section,
        "entry": entries.get(section),
        "tab": page,
        "theme": theme if theme in THEMES else "auto",
        "page_language": get_language(),
        "language_tag": html_tag(get_language()),
        "page_languages": settings.LANGUAGES,
        "words_version": WORDS_VERSION,
        "times": principal.user.times if principal is not None else Times.BOTH,
        "now_s": f"{time.time():.3f}",
        "navigation": navigation,
        "alerts_waiting": entries["alerts"].waiting if "alerts" in entries else None,
    }


def navigation_of(principal: Principal | None) -> list[NavSection]:
    """The pages that the account may open, below their headings."""
    if principal is None:
        return []
    counts = waiting(board, principal.names)
    sections = (
        NavSection(label, [one for entry in entries if (one := _entry(principal, counts, *entry)) is not None])
        for label, entries in _SECTIONS
    )
    return [section for section in sections if section.entries]


def _entry(
    principal: Principal,
    counts: Mapping[str, int],
    key: str,
    label: str | Promise,
    view: str,
    icon: str,
    permission: Permission | None,
) -> NavEntry | None:
    """The entry, None when the account may open nothing behind it."""
    if permission is None:
        tabs = tuple(
            NavEntry(tab, name, reverse(page), icon) for tab, name, page, needs in _TABS[key] if principal.may(needs)
        )
        return NavEntry(key, label, tabs[0].href, icon, tabs=tabs) if tabs else None
    if not principal.may(permission):
        return None
    return NavEntry(key, label, reverse(view), icon, counts.get(key, 0) if key in PAGES else None)
