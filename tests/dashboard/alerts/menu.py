"""The menu, as tests of alerts look at it."""

from __future__ import annotations

from dashboard.access.permissions import principal_of
from dashboard.models.management import User
from dashboard.web.context import navigation_of


def waiting_in_menu() -> int:
    """Alerts, as an administrator's pages count them."""
    user = User(username="a", role="admin")
    entries = [one for part in navigation_of(principal_of(user)) for one in part.entries]
    return next(one.waiting or 0 for one in entries if one.key == "alerts")
