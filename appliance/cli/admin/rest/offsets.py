"""`gantry admin reset | clone`: a group's offsets, with a look at what would be skipped or repeated before.

What only the dashboard can do, as it remembers where groups were, is its call of REST.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import DEFAULT_TIMEOUT_S, open_admin, parse_time
from appliance.cli.admin.rest.client import open_rest
from appliance.cli.admin.rest.table import CALLS
from appliance.cli.tables import table
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.offsets import TO_END
from gantrymq.client.admin.results import QueueMove
from gantrymq.errors import ConfigError

BY_DASHBOARD = CALLS["reset"][""]
ONLY_BY_DASHBOARD = ("shift", "copy", "undo")


def _opens(arguments: argparse.Namespace) -> contextlib.AbstractAsyncContextManager[Any]:
    """Raises ConfigError where the other one is named: what is meant may be in another cluster."""
    is_rest = arguments.to in ONLY_BY_DASHBOARD
    asked, other = ("dashboard", "namesrv") if is_rest else ("namesrv", "dashboard")
    if other in arguments.given and asked not in arguments.given:
        raise ConfigError(f"{', '.join(ONLY_BY_DASHBOARD)} ask the dashboard, all else the brokers: say --{asked}")
    if not is_rest and "timeout" not in arguments.given:
        arguments.timeout = DEFAULT_TIMEOUT_S
    return (open_rest if is_rest else open_admin)(arguments)


async def plan_reset(admin: Any, arguments: argparse.Namespace) -> Shown:
    if arguments.to in ONLY_BY_DASHBOARD:
        return await BY_DASHBOARD.act(admin, arguments, dry_run=True)
    return _joined(
        [_shown(arguments.id_name, moves, is_online=None) for moves in await _moves(admin, arguments)], arguments
    )


async def reset(admin: Any, arguments: argparse.Namespace) -> Shown:
    """Topic by topic, once all of them can be."""
    if arguments.to in ONLY_BY_DASHBOARD:
        return await BY_DASHBOARD.act(admin, arguments)
    shown = []
    for topic, moves in zip(arguments.topics, await _moves(admin, arguments), strict=True):
        is_online = await admin.offsets.reset(
            arguments.id_name,
            topic,
            TO_END if arguments.to is None else arguments.to,
            moves,
            by_offset=hasattr(arguments, "offset"),
        )
        shown.append(_shown(arguments.id_name, moves, is_online=is_online))
    return _joined(shown, arguments)


async def _moves(admin: AdminClient, arguments: argparse.Namespace) -> list[list[QueueMove]]:
    """The moves of each topic."""
    offset = getattr(arguments, "offset", None)
    if (arguments.to is None) == (offset is None):
        raise ConfigError("say where to, in one way: --to TIME (such as 2h, begin or end), or --offset N")
    if hasattr(arguments, "by") or hasattr(arguments, "source"):
        raise ConfigError("--by N goes with --to shift, --source GROUP with --to copy")
    to = arguments.to if arguments.to is not None else TO_END
    return [await admin.offsets.plan_reset(arguments.id_name, topic, to, offset=offset) for topic in arguments.topics]


def _joined(shown: Sequence[Shown], arguments: argparse.Namespace) -> Shown:
    """What is shown of several topics; of one as it is."""
    if len(shown) == 1:
        return shown[0]
    named = list(zip(arguments.topics, shown, strict=True))
    lines = [line for topic, one in named for line in (f"{topic}:", *one.lines, "")][:-1]
    return Shown([{"topic": topic, **one.document} for topic, one in named], lines)


async def plan_clone(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    moves = await admin.offsets.plan_clone(arguments.source, arguments.group, arguments.topic)
    if not moves:
        raise NotThere(f"{arguments.source} has no offsets on {arguments.topic}")
    return _shown(arguments.group, moves, is_online=None)


async def clone(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    await plan_clone(admin, arguments)
    moves = await admin.offsets.clone(arguments.source, arguments.group, arguments.topic)
    return _shown(arguments.group, moves, is_online=False)


def _shown(group: str, moves: Sequence[QueueMove], *, is_online: bool | None) -> Shown:
    rows = [
        (move.queue.broker_name, move.queue.queue_id, move.before, move.after, move.skipped, move.repeated)
        for move in moves
    ]
    lines = table(("broker", "queue", "from", "to", "skips", "repeats"), rows, empty="no offsets to reset")
    skipped, repeated = sum(move.skipped for move in moves), sum(move.repeated for move in moves)
    would = "would skip" if is_online is None else "skips"
    again = "repeat" if is_online is None else "repeats"
    lines.append(f"{group} {would} {skipped:,} messages and {again} {repeated:,}")
    if is_online is not None:
        lines.append(
            "running consumers were notified" if is_online else "the group has no members: the offsets were written"
        )
    document = {
        "group": group,
        "skips": skipped,
        "repeats": repeated,
        "isOnline": is_online,
        "queues": [{"queue": move.queue, "from": move.before, "to": move.after} for move in moves],
    }
    return Shown(document, lines)


def _where(text: str) -> int | str:
    return text if text in ONLY_BY_DASHBOARD else parse_time(text)


def _reset_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of the dashboard's call have its fields' names."""
    parser.add_argument("id_name", metavar="GROUP")
    parser.add_argument("topics", nargs="+", metavar="TOPIC", help="one, or several")
    parser.add_argument(
        "--to", type=_where, metavar="WHERE",
        help="begin, end, 2h (2 hours ago), 10:30, 2026-11-21T10:00; by the dashboard: shift, copy, undo",
    )  # fmt: skip
    others = {field.key: field for field in BY_DASHBOARD.fields}
    for key in ("offset", "by", "source"):
        others[key].add(parser)


def _clone_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM-GROUP")
    parser.add_argument("group", metavar="TO-GROUP", help="must not be running")
    parser.add_argument("topic", metavar="TOPIC")


COMMANDS = {
    "reset": {
        "": Command("reset a group's offsets in topics", reset, _reset_arguments, plan_reset, loses=True, opens=_opens)
    },
    "clone": {"": Command("copy offsets from another group", clone, _clone_arguments, plan_clone, loses=True)},
}
