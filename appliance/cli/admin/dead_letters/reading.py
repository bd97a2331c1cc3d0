"""Which dead letters a command is about, and reading them queue after queue."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable

from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import parse_time, positive
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.results import LostMessage
from gantrymq.errors import RouteNotFound
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.properties import CONSUME_ERROR
from gantrymq.message.topics import dlq_topic
from gantrymq.remoting.admin_bodies import TopicOffset


def add_choice(parser: argparse.ArgumentParser) -> None:
    """The group, and which of its letters."""
    parser.add_argument("group", metavar="GROUP")
    add_filters(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Which letters; all when nothing is given."""
    parser.add_argument("--cause", metavar="TEXT", help='only those that failed for this; "": those without a cause')
    parser.add_argument("-k", "--key", metavar="KEY", help="only those with this key")
    parser.add_argument("--from", dest="begin", type=parse_time, metavar="TIME", help="2h (2 hours ago), 10:30, …")
    parser.add_argument("--to", dest="end", type=parse_time, metavar="TIME")
    parser.add_argument("--limit", type=positive, metavar="N", help="at most N messages")


async def extents(admin: AdminClient, group: str) -> dict[MessageQueue, TopicOffset]:
    """The queues of the group's dead letters. NotThere when it has none."""
    try:
        return await admin.topics.offsets(dlq_topic(group))
    except RouteNotFound as exc:
        raise NotThere(f"{group} has no dead letters") from exc


async def chosen(
    admin: AdminClient, arguments: argparse.Namespace, on_lost: Callable[[LostMessage], object] | None = None
) -> AsyncIterator[MessageExt]:
    """The letters that the command is about, the oldest of each queue first, up to where the queues end now.

    on_lost: called with each that is damaged on its broker's disk.
    """
    found = await extents(admin, arguments.group)
    masters = await admin.topics.masters(dlq_topic(arguments.group))
    left = arguments.limit
    for queue, at in found.items():
        reading = admin.messages.read_queue_at(
            masters[queue.broker_name], queue.topic, queue.queue_id, at.min_offset, at.max_offset,
            broker_name=queue.broker_name, on_lost=on_lost,
        )  # fmt: skip
        async for letter in reading:
            if not _is_wanted(letter, arguments):
                continue
            if left is not None and left <= 0:
                return
            left = None if left is None else left - 1
            yield letter


def cause_of(letter: MessageExt) -> str:
    return letter.properties.get(CONSUME_ERROR, "")


def _is_wanted(letter: MessageExt, arguments: argparse.Namespace) -> bool:
    if arguments.cause is not None and cause_of(letter) != arguments.cause:
        return False
    if arguments.key is not None and arguments.key not in letter.keys:
        return False
    is_before_end = arguments.end in (None, -1) or letter.store_timestamp <= arguments.end
    return is_before_end and letter.store_timestamp >= (arguments.begin or 0)
