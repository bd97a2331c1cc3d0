"""The menu: four headings, and below them the pages that a role may open."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from dashboard.access.permissions import principal_of
from dashboard.models.management import User
from dashboard.web.context import navigation_of

LOOK = ("Look", ["Overview", "Topics", "Groups", "Messages and traces", "Clients", "Brokers"])
REPAIR = ("Repair", ["Alerts", "Dead letters"])


@pytest.mark.parametrize(
    ("role", "wanted"),
    [
        ("reader", [LOOK, REPAIR, ("History", ["Reports"]), ("Set up", ["Connect", "API tokens"])]),
        ("operator", [LOOK, REPAIR, ("History", ["Reports", "Audit"]), ("Set up", ["Connect", "API tokens"])]),
        (
            "admin",
            [
                LOOK, REPAIR, ("History", ["Reports", "Audit"]),
                ("Set up", [
                    "Connect", "Users", "API tokens", "Broker accounts",
                    "Brokers", "Security", "Key-value table", "Definitions",
                ]),
            ],
        ),
    ],
)  # fmt: skip
def test_a_role_sees_the_pages_it_may_open_below_headings(role: str, wanted: list[tuple[str, list[str]]]) -> None:
    with override("en"):
        shown = [
            (str(part.label), [str(page.label) for entry in part.entries for page in entry.tabs or (entry,)])
            for part in navigation_of(principal_of(User(username="ada", role=role)))
        ]
    assert shown == wanted


def test_an_entry_and_a_tab_know_the_addresses_that_they_mark() -> None:
    parts = navigation_of(principal_of(User(username="ada", role="admin")))
    marked = [page for part in parts for entry in part.entries for page in entry.tabs or (entry,)]
    assert [page.key for page in marked] == [page.href.split("/")[1] for page in marked]
