"""What every page's frame needs: who is there, the navigation, the theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from dashboard.accounts.access import Permission, Principal

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "gantry_theme"


@dataclass(frozen=True, slots=True)
class NavEntry:
    """One line of the navigation. key: the first part of the address, which marks the current entry."""

    key: str
    label: str
    href: str
    icon: str


_ENTRIES = (
    ("", "Overview", "overview", "overview", Permission.CLUSTER_READ),
    ("topics", "Topics", "topics", "topics", Permission.TOPICS_READ),
    ("groups", "Groups", "groups", "groups", Permission.GROUPS_READ),
    ("connect", "Connect", "connect", "connect", Permission.CLUSTER_READ),
    ("clients", "Clients", "clients", "clients", Permission.CLUSTER_READ),
    ("dead-letters", "Dead letters", "dead-letters", "dead", Permission.MESSAGES_READ),
    ("alarms", "Alarms", "alarms", "bell", Permission.CLUSTER_READ),
    ("incidents", "Incidents", "incidents", "warn", Permission.CLUSTER_READ),
    ("reports", "Reports", "reports:index", "reports", Permission.REPORTS_READ),
    ("audit", "Audit", "audit", "audit", Permission.AUDIT_READ),
    ("security", "Security", "security", "shield", Permission.USERS_WRITE),
    ("people", "People", "people", "people", Permission.USERS_WRITE),
    ("tokens", "API tokens", "tokens", "tokens", Permission.ACCOUNT),
)


def chrome(request: HttpRequest) -> dict[str, Any]:
    """Template context of the frame around each page."""
    principal = getattr(request, "principal", None)
    section = request.path.split("/")[1]
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return {
        "principal": principal,
        "section": {"topic": "topics", "group": "groups"}.get(section, section),
        "theme": theme if theme in THEMES else "auto",
        "navigation": navigation_of(principal),
    }


def navigation_of(principal: Principal | None) -> list[NavEntry]:
    """The pages that the account may open."""
    return [
        NavEntry(key, label, reverse(name), icon)
        for key, label, name, icon, permission in _ENTRIES
        if principal is not None and principal.may(permission)
    ]
