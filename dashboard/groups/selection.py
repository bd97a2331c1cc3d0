"""Which consumer groups a list is about, for page and REST alike."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import is_system_group
from dashboard.cluster.values import PartialFailure
from dashboard.groups.group_cache import group_book
from dashboard.status.board import WatchedGroup


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """What was asked for: a part of the name, and whether the cluster's own groups are wanted."""

    text: str = ""
    shows_system: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """What there is of it. A group that was never looked at has `at` 0."""

    wanted: GroupSelection
    groups: list[WatchedGroup]
    visible: int
    hidden: int
    failures: list[PartialFailure]


async def select(gateway: Gateway, wanted: GroupSelection) -> Selected:
    """The groups by name, as they were seen last. Raises GatewayError."""
    listing = await group_book.listing(gateway)
    visible = [name for name in listing.settings if wanted.shows_system or not is_system_group(name)]
    text = wanted.text.lower()
    found = [group_book.known(name) or WatchedGroup(name, None, None, None, 0.0)
             for name in visible if text in name.lower()]  # fmt: skip
    return Selected(wanted, found, len(visible), len(listing.settings) - len(visible), listing.failures)
