"""One consumer group with all that says why it is behind, for page and REST alike."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from dashboard.cluster.errors import GroupNotFound
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.group_values import GroupDetail
from dashboard.groups.group_cache import group_book
from dashboard.groups.lag_checks import lag_checks
from dashboard.groups.listing import GroupRow, rows_of
from dashboard.groups.member_load import MemberLoad, loads_of
from dashboard.language.sentences import gettext
from dashboard.limits.names import NameLimit, current
from dashboard.status.board import board
from dashboard.status.check import Check

SHARED_S = 2.0  # below what a tab waits before it asks again
SHARED_MAX = 64

_shared: dict[tuple[str, NameLimit], tuple[Gateway, float, asyncio.Task[GroupView]]] = {}


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group now, as it was looked at before, its members at work, and what keeps it back."""

    detail: GroupDetail
    row: GroupRow
    loads: list[MemberLoad]
    checks: list[Check]


async def group_view(gateway: Gateway, name: str) -> GroupView:
    """Ask for all of it. Raises GroupNotFound, BrokerUnreachable."""
    detail = await gateway.groups.get(name)
    row = await _row(gateway, name)
    if row.group.is_broadcasting:  # also while it has no members, which a look at the brokers alone can't tell
        detail = replace(detail, is_broadcasting=True, queues=())
    loads = loads_of(detail)
    return GroupView(detail, row, loads, lag_checks(detail, row.group, loads))


async def shared_view(gateway: Gateway, name: str) -> GroupView:
    """The same, asked for once in SHARED_S for all who look at the group and may see the same. Raises likewise."""
    loop, wanted = asyncio.get_running_loop(), (name, current())
    known = _shared.get(wanted)
    is_usable = known is not None and known[0] is gateway and known[2].get_loop() is loop
    if known is None or not is_usable or loop.time() - known[1] >= SHARED_S:
        if len(_shared) >= SHARED_MAX:
            _shared.clear()
        task = loop.create_task(group_view(gateway, name), name=f"look at group {name}")
        known = _shared[wanted] = gateway, loop.time(), task
    return await asyncio.shield(known[2])


async def group_row(gateway: Gateway, name: str) -> GroupRow:
    """The group as it was looked at last: what tabs may ask for every second. Raises GroupNotFound."""
    listing = await group_book.listing(gateway)
    if name not in listing.settings and group_book.known(name) is None and not listing.failures:
        raise GroupNotFound(gettext("There is no consumer group %(name)s.") % {"name": name})
    return await _row(gateway, name)


async def _row(gateway: Gateway, name: str) -> GroupRow:
    [seen] = await group_book.rows(gateway, [name])
    return rows_of([seen], board.snapshot.stored if board.snapshot is not None else None)[0]
