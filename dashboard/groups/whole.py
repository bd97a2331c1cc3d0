"""One consumer group with all that says why it is behind, for page and REST alike."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.cluster.errors import GroupNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupDetail
from dashboard.groups.book import group_book
from dashboard.groups.diagnosis import Cause, causes
from dashboard.groups.listing import GroupRow, rows_of
from dashboard.groups.member_load import MemberLoad, loads_of
from dashboard.status.board import board


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group now, as it was looked at before, its members at work, and what keeps it back."""

    detail: GroupDetail
    row: GroupRow
    loads: list[MemberLoad]
    causes: list[Cause]


async def group_view(gateway: Gateway, name: str) -> GroupView:
    """Ask for all of it. Raises GroupNotFound, BrokerUnreachable."""
    detail = await gateway.groups.get(name)
    row = await _row(gateway, name)
    loads = loads_of(detail)
    return GroupView(detail, row, loads, causes(detail, row.group, loads))


async def group_row(gateway: Gateway, name: str) -> GroupRow:
    """The group as it was looked at last: what tabs may ask for every second. Raises GroupNotFound."""
    listing = await group_book.listing(gateway)
    if name not in listing.settings and group_book.known(name) is None and not listing.failures:
        raise GroupNotFound(f"There is no consumer group {name}.")
    return await _row(gateway, name)


async def _row(gateway: Gateway, name: str) -> GroupRow:
    [seen] = await group_book.rows(gateway, [name])
    return rows_of([seen], board.snapshot.stored if board.snapshot is not None else None)[0]
