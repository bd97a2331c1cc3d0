"""The verbs of `gantry admin dead-letters`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import parse_time, positive
from appliance.cli.admin.output import message_json, print_json_line, when
from appliance.cli.tables import table
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.results import LostMessage
from gantrymq.errors import ConfigError, MessageRejected, ResponseError, RouteNotFound
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.properties import CONSUME_ERROR
from gantrymq.message.topics import DLQ_PREFIX, dlq_topic, is_dlq_topic
from gantrymq.remoting.admin_bodies import TopicOffset

NO_CAUSE = "(no cause reported)"
RATE_MAX = 200


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


async def list_letters(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """The groups that have some; of one group the causes."""
    if arguments.group is not None:
        return await _causes(admin, arguments)
    masters = await admin.cluster.masters()
    names = {
        name for address in masters.values() for name in (await admin.topics.configs_at(address)).topic_config_table
    }
    groups: list[dict[str, Any]] = []
    for topic in sorted(name for name in names if is_dlq_topic(name)):
        found = await extents(admin, topic.removeprefix(DLQ_PREFIX))
        stored = sum(at.max_offset - at.min_offset for at in found.values())
        last = max((at.last_update_timestamp for at in found.values()), default=0)
        groups.append({"group": topic.removeprefix(DLQ_PREFIX), "letters": stored, "lastMs": last})
    rows = [(one["group"], one["letters"], when(one["lastMs"]) if one["letters"] else None) for one in groups]
    return Shown(groups, table(("group", "dead letters", "last"), rows, empty="no group has dead letters"))


async def _causes(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    counts: Counter[str] = Counter()
    async for letter in chosen(admin, arguments):
        counts[cause_of(letter)] += 1
    causes = [{"cause": cause, "letters": count} for cause, count in counts.most_common()]
    rows = [(count, cause or NO_CAUSE) for cause, count in counts.most_common()]
    return Shown(causes, table(("dead letters", "cause"), rows, empty=f"{arguments.group} has no such dead letter"))


async def export(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """A line of JSON each."""
    async for letter in chosen(admin, arguments):
        print_json_line(message_json(letter))
    return Shown(None)


async def plan_put_back(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    count = 0
    async for _ in chosen(admin, arguments):
        count += 1
    if not count:
        raise NotThere(f"{arguments.group} has no such dead letter")
    target = "their original topics, where all groups receive them" if arguments.to_topic else "this group alone"
    lines = [f"resend {count:,} dead letters of {arguments.group} to {target}, {arguments.rate} a second",
             "their handlers run again; messages that were resent before are resent again"]  # fmt: skip
    return Shown({"group": arguments.group, "letters": count}, lines)


async def put_back(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """One after the other at the rate asked for; a letter that can't be sent is told, and the next one is next."""
    started, results, troubles = time.monotonic(), [], []
    async for letter in chosen(admin, arguments, lambda lost: troubles.append(f"damaged, not sent: {lost}")):
        place = f"{letter.broker_name}.{letter.queue_id}.{letter.queue_offset}"
        try:
            sent = await (
                admin.messages.resend(letter)
                if arguments.to_topic
                else admin.messages.put_back(letter, arguments.group)
            )
            results.append({"letter": place, "id": sent.msg_id})
        except (ConfigError, MessageRejected, ResponseError) as exc:
            troubles.append(f"{place}: {exc}")
        done = len(results) + len(troubles)
        await asyncio.sleep(max(0.0, started + done / arguments.rate - time.monotonic()))
    rows = [(one["letter"], one["id"]) for one in results]
    return Shown(results, table(("dead letter", "sent as"), rows, empty="nothing was resent"), troubles)


async def plan_discard(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    stored = sum(at.max_offset - at.min_offset for at in (await extents(admin, arguments.group)).values())
    if arguments.letters is not None and arguments.letters != stored:
        raise ConfigError(f"{arguments.group} has {stored} dead letters now, not {arguments.letters}")
    line = f"discard all {stored:,} dead letters of {arguments.group}, for good"
    return Shown({"group": arguments.group, "letters": stored}, [line])


async def discard(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    shown = await plan_discard(admin, arguments)
    await admin.topics.delete(dlq_topic(arguments.group))
    return Shown(shown.document, [f"{shown.document['letters']:,} dead letters of {arguments.group} discarded"])


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="GROUP", help="the causes of this group's dead letters")
    add_filters(parser)


def _put_back_arguments(parser: argparse.ArgumentParser) -> None:
    add_choice(parser)
    parser.add_argument(
        "--rate", type=_rate, default=10, metavar="N", help="messages per second (default: %(default)s)"
    )
    parser.add_argument("--to-topic", action="store_true", help="to their original topics instead, for all groups")


def _discard_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("--letters", type=positive, metavar="N", help="only if the group has this many")


def _rate(text: str) -> int:
    rate = positive(text)
    if rate > RATE_MAX:
        raise argparse.ArgumentTypeError(f"at most {RATE_MAX} a second")
    return rate


COMMANDS = {
    "dead-letters": {
        "list": Command("groups with dead letters; of one group, why they failed", list_letters, _list_arguments),
        "export": Command("dead letters as lines of JSON", export, add_choice),
        "resend": Command(
            "resend dead letters to their group", put_back, _put_back_arguments, plan_put_back, loses=True
        ),
        "discard": Command(
            "discard all dead letters of a group", discard, _discard_arguments, plan_discard, loses=True
        ),
    }
}
