"""`gantry admin messages`: finding messages, and reading topics."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import datetime

from appliance.cli.admin import send as admin_send
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import not_negative, parse_time, positive
from appliance.cli.admin.output import body_text, message_json, message_lines, print_json_line, when
from appliance.cli.admin.send import add_topic_and_id, message_by_id
from appliance.cli.tables import Cell, table
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.messages import LONG_MAX
from gantrymq.client.produce.trace_records import TraceKind
from gantrymq.client.results import LostMessage
from gantrymq.errors import ConfigError, RouteNotFound
from gantrymq.message.model import MessageExt, MessageQueue
from gantrymq.message.topics import TRACE_TOPIC

BODY_IN_TABLE_CHARS = 60
TAIL_PAUSE_S = 0.5


def _row(message: MessageExt) -> list[Cell]:
    body = body_text(message.body, limit=BODY_IN_TABLE_CHARS).replace("\n", "⏎")
    return [
        when(message.store_timestamp), message.broker_name or None, message.queue_id, message.queue_offset,
        message.msg_id, message.tags, " ".join(message.keys) or None, body,
    ]  # fmt: skip


COLUMNS = ("stored", "broker", "queue", "offset", "id", "tag", "keys", "body")


# -- finding ----------------------------------------------------------------------------------------------------------


async def show_message(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
    deliveries = await admin.messages.deliveries(message)
    rows = [(each.group, each.state, "online" if each.is_online else "offline") for each in deliveries]
    lines = [*message_lines(message), "", *table(("group", "consumed", "members"), rows, empty="no group consumes it")]
    return Shown({"message": message, "deliveries": deliveries}, lines)


async def query_messages(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    found = await admin.messages.find_by_key(
        arguments.topic,
        arguments.key,
        max_messages=arguments.limit,
        begin_ms=max(arguments.begin or 0, 0),
        end_ms=LONG_MAX if arguments.end in (None, -1) else arguments.end,
    )
    empty = f"no message of {arguments.topic} has the key {arguments.key}"
    return Shown(found, table(COLUMNS, map(_row, found), empty=empty), is_failure=not found)


async def message_at(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await admin.topics.masters(arguments.topic)
    if arguments.broker is None and len(masters) > 1:
        raise ConfigError(f"{arguments.topic} has queues at {', '.join(masters)}: say which with --broker")
    name = arguments.broker or next(iter(masters))
    if name not in masters:
        raise NotThere(f"{arguments.topic} has no queue at {name}; it is at {', '.join(masters)}")
    damaged: list[LostMessage] = []
    messages, _, least, most = await admin.messages.pull_at(
        masters[name], arguments.topic, arguments.queue, arguments.offset, 1, on_lost=damaged.append
    )
    if damaged and damaged[0].queue_offset == arguments.offset:
        raise NotThere(f"this message is damaged: {damaged[0]}")
    if not messages or messages[0].queue_offset != arguments.offset:
        raise NotThere(f"queue {arguments.queue} has no message at {arguments.offset}: it holds {least} to {most - 1}")
    messages[0].broker_name = name
    return Shown(messages[0], message_lines(messages[0]))


async def show_trace(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    try:
        trace = await admin.messages.trace(arguments.id, topic=arguments.trace_topic)
    except RouteNotFound as exc:
        raise NotThere(
            f"no client has reported anything to {exc.topic} yet: turn tracing on with Producer(trace=True)"
        ) from exc
    rows = [
        (when(one.time_ms), one.kind.value, one.group or None, one.client_host,
         None if one.kind is TraceKind.SUB_BEFORE else "yes" if one.is_success else "no",
         None if one.kind is TraceKind.SUB_BEFORE else one.cost_ms,
         one.retry_times if one.kind is TraceKind.SUB_BEFORE else None, one.store_host or None)
        for one in trace.records
    ]  # fmt: skip
    columns = ("time", "what", "group", "client", "success", "ms", "tried before", "broker")
    return Shown(
        trace,
        table(columns, rows, empty=f"no client reported {arguments.id} to {arguments.trace_topic}"),
        is_failure=not rows,
    )


# -- reading on -------------------------------------------------------------------------------------------------------


async def _ranges(admin: AdminClient, arguments: argparse.Namespace) -> dict[MessageQueue, tuple[str, int, int]]:
    """What to read of each queue: its broker's address, first offset, and the offset to stop before."""
    masters = await admin.topics.masters(arguments.topic)
    found: dict[MessageQueue, tuple[str, int, int]] = {}
    for queue, at in (await admin.topics.offsets(arguments.topic)).items():
        if arguments.queue is not None and queue.queue_id != arguments.queue:
            continue
        address = masters[queue.broker_name]
        begin = at.min_offset
        if arguments.begin == -1:
            begin = at.max_offset
        elif arguments.begin:
            begin = await admin.offsets.search_at(address, queue.topic, queue.queue_id, arguments.begin)
        found[queue] = address, begin, at.max_offset
    return found


async def print_messages(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Queue after queue, as they are read."""
    left = arguments.limit
    for queue, (address, begin, end) in (await _ranges(admin, arguments)).items():
        reading = admin.messages.read_queue_at(
            address, queue.topic, queue.queue_id, begin, end, broker_name=queue.broker_name
        )
        async for message in reading:
            if arguments.end not in (None, -1) and message.store_timestamp > arguments.end:
                break  # store times rise with offsets
            if message.store_timestamp < (arguments.begin or 0) or not _is_wanted(message, arguments):
                continue
            if left is not None and left <= 0:
                return Shown(None)
            left = None if left is None else left - 1
            _print_message(message, arguments)
    return Shown(None)


def _is_wanted(message: MessageExt, arguments: argparse.Namespace) -> bool:
    return arguments.tag is None or message.tags == arguments.tag


def _print_message(message: MessageExt, arguments: argparse.Namespace) -> None:
    if arguments.json:
        print_json_line(message_json(message))
        return
    at = datetime.fromtimestamp(message.store_timestamp / 1000)
    tag = f" [{message.tags}]" if message.tags else ""
    keys = f" ({' '.join(message.keys)})" if message.keys else ""
    body = body_text(message.body, limit=None if arguments.body else BODY_IN_TABLE_CHARS * 2)
    text = body if arguments.body else body.replace("\n", "⏎")
    where = f"{message.broker_name}/{message.queue_id}/{message.queue_offset}"
    sys.stdout.write(f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}  {where}{tag}{keys}  {text}\n")
    sys.stdout.flush()


async def tail(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Messages as they come, until interrupted or --limit."""
    offsets = {
        queue: (address, max(begin - arguments.last, 0))
        for queue, (address, begin, _) in (await _ranges(admin, arguments)).items()
    }
    left = arguments.limit
    while True:
        for queue, (address, offset) in offsets.items():
            async for message in _new(admin, queue, address, offset):
                offsets[queue] = address, message.queue_offset + 1
                if not _is_wanted(message, arguments):
                    continue
                _print_message(message, arguments)
                left = None if left is None else left - 1
                if left == 0:
                    return Shown(None)
        await asyncio.sleep(TAIL_PAUSE_S)


def _new(admin: AdminClient, queue: MessageQueue, address: str, offset: int) -> AsyncIterator[MessageExt]:
    return admin.messages.read_queue_at(address, queue.topic, queue.queue_id, offset, broker_name=queue.broker_name)


# -- options ----------------------------------------------------------------------------------------------------------


def _topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")


def _query_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("-k", "--key", required=True, metavar="KEY")
    parser.add_argument("--limit", type=positive, default=64, metavar="N", help="default: %(default)s")
    _times(parser)


def _times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="begin", type=parse_time, metavar="TIME", help="2h (2 hours ago), 10:30, …")
    parser.add_argument("--to", dest="end", type=parse_time, metavar="TIME")


def _at_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("queue", type=not_negative, metavar="QUEUE", help="queue id, such as 0")
    parser.add_argument("offset", type=not_negative, metavar="OFFSET", help="the message's queue offset")
    parser.add_argument("-b", "--broker", metavar="NAME")


def _reading(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("--queue", type=not_negative, metavar="ID", help="only this queue id")
    parser.add_argument("--tag", metavar="TAG", help="only this tag")
    parser.add_argument("--limit", type=positive, metavar="N", help="stop after N messages")
    parser.add_argument("--body", action="store_true", help="print complete bodies")


def _print_arguments(parser: argparse.ArgumentParser) -> None:
    _reading(parser)
    _times(parser)


def _tail_arguments(parser: argparse.ArgumentParser) -> None:
    _reading(parser)
    parser.add_argument("--last", type=not_negative, default=0, metavar="N", help="begin with the last N of each queue")
    parser.set_defaults(begin=-1, end=None)


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="unique id")
    parser.add_argument("--trace-topic", default=TRACE_TOPIC, metavar="TOPIC", help="default: %(default)s")


COMMANDS = {
    "messages": {
        "show": Command("one message by id, and who consumed it", show_message, add_topic_and_id),
        "query": Command("messages with a key", query_messages, _query_arguments),
        "at": Command("the message at a queue offset", message_at, _at_arguments),
        "print": Command("messages of a topic, queue after queue", print_messages, _print_arguments),
        "tail": Command("new messages as they arrive", tail, _tail_arguments),
        "trace": Command("what clients with tracing on did with a message", show_trace, _trace_arguments),
        **admin_send.AGAIN,
    },
    "send": {"": admin_send.SEND},
}
