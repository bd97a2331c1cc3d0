"""`gantry admin messages | send`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

from appliance.cli.admin_command import Command, NotThere, Shown, parse_pair, parse_time, positive
from appliance.cli.admin_output import Cell, body_text, facts, message_json, print_json_line, table, when
from gantrymq.client.admin import LONG_MAX, AdminClient
from gantrymq.client.trace_records import TraceKind
from gantrymq.errors import ConfigError
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.message.topics import TRACE_TOPIC

BODY_IN_TABLE_CHARS = 60
BODY_CHARS_MAX = 100_000
TAIL_PAUSE_S = 0.5


def _row(message: MessageExt) -> list[Cell]:
    body = body_text(message.body, limit=BODY_IN_TABLE_CHARS).replace("\n", "⏎")
    return [
        when(message.store_timestamp), message.broker_name or None, message.queue_id, message.queue_offset,
        message.msg_id, message.tags, " ".join(message.keys) or None, body,
    ]  # fmt: skip


COLUMNS = ("stored", "broker", "queue", "offset", "id", "tag", "keys", "body")


def _message_lines(message: MessageExt) -> list[str]:
    shown = facts(
        [
            ("topic", message.topic),
            ("queue", f"{message.broker_name or '?'} {message.queue_id}, offset {message.queue_offset}"),
            ("id", message.msg_id),
            ("offset id", message.offset_msg_id),
            ("tag", message.tags),
            ("keys", " ".join(message.keys) or None),
            ("born", f"{when(message.born_timestamp)} at {message.born_host[0]}"),
            ("stored", f"{when(message.store_timestamp)} at {message.store_host[0]}:{message.store_host[1]}"),
            ("tried before", message.reconsume_times),
            ("properties", ", ".join(f"{name}={value}" for name, value in sorted(message.properties.items()))),
            ("body", f"{len(message.body):,} bytes"),
        ]
    )
    return [*shown, "", *body_text(message.body, limit=BODY_CHARS_MAX).splitlines()]


# -- finding ----------------------------------------------------------------------------------------------------------


async def _by_id(admin: AdminClient, arguments: argparse.Namespace) -> MessageExt:
    message = await admin.find_by_id(arguments.topic, arguments.id)
    if message is None:
        raise NotThere(f"{arguments.topic} has no message {arguments.id} (any more)")
    return message


async def show_message(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await _by_id(admin, arguments)
    deliveries = await admin.deliveries(message)
    rows = [(each.group, each.state, "online" if each.is_online else "offline") for each in deliveries]
    lines = [*_message_lines(message), "", *table(("group", "consumed", "members"), rows, empty="no group consumes it")]
    return Shown({"message": message, "deliveries": deliveries}, lines)


async def query_messages(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    found = await admin.find_by_key(
        arguments.topic,
        arguments.key,
        max_messages=arguments.limit,
        begin_ms=max(arguments.begin or 0, 0),
        end_ms=LONG_MAX if arguments.end in (None, -1) else arguments.end,
    )
    empty = f"no message of {arguments.topic} has the key {arguments.key}"
    return Shown(found, table(COLUMNS, map(_row, found), empty=empty), is_failure=not found)


async def message_at(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await admin.topic_masters(arguments.topic)
    if arguments.broker is None and len(masters) > 1:
        raise ConfigError(f"{arguments.topic} has queues at {', '.join(masters)}: say which with --broker")
    name = arguments.broker or next(iter(masters))
    if name not in masters:
        raise NotThere(f"{arguments.topic} has no queue at {name}; it is at {', '.join(masters)}")
    messages, _, least, most = await admin.pull_messages(
        masters[name], arguments.topic, arguments.queue, arguments.offset, 1
    )
    if not messages or messages[0].queue_offset != arguments.offset:
        raise NotThere(f"queue {arguments.queue} has no message at {arguments.offset}: it holds {least} to {most - 1}")
    messages[0].broker_name = name
    return Shown(messages[0], _message_lines(messages[0]))


async def show_trace(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    trace = await admin.message_trace(arguments.id, topic=arguments.trace_topic)
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
        table(columns, rows, empty=f"no client told {arguments.trace_topic} of {arguments.id}"),
        is_failure=not rows,
    )


# -- reading on -------------------------------------------------------------------------------------------------------


async def _ranges(admin: AdminClient, arguments: argparse.Namespace) -> dict[MessageQueue, tuple[str, int, int]]:
    """What to read of each queue: its broker's address, first offset, and the offset to stop before."""
    masters = await admin.topic_masters(arguments.topic)
    found: dict[MessageQueue, tuple[str, int, int]] = {}
    for queue, at in (await admin.topic_offsets(arguments.topic)).items():
        if arguments.queue is not None and queue.queue_id != arguments.queue:
            continue
        address = masters[queue.broker_name]
        begin = at.min_offset
        if arguments.begin == -1:
            begin = at.max_offset
        elif arguments.begin:
            begin = await admin.search_offset(address, queue.topic, queue.queue_id, arguments.begin)
        found[queue] = address, begin, at.max_offset
    return found


async def print_messages(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Queue after queue, as they are read."""
    left = arguments.limit
    for queue, (address, begin, end) in (await _ranges(admin, arguments)).items():
        reading = admin.read_queue(address, queue.topic, queue.queue_id, begin, end, broker_name=queue.broker_name)
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
    return admin.read_queue(address, queue.topic, queue.queue_id, offset, broker_name=queue.broker_name)


# -- sending ----------------------------------------------------------------------------------------------------------


async def plan_resend(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await _by_id(admin, arguments)
    return Shown(message, ["send a copy of:", *_message_lines(message)])


async def resend(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    result = await admin.resend(await _by_id(admin, arguments), topic=arguments.to)
    return Shown(result, [f"sent to {result.queue.topic} as {result.msg_id}"])


async def plan_deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await _by_id(admin, arguments)
    _, client = await _member(admin, arguments)
    return Shown(message, [f"hand to {client} of {arguments.group}:", *_message_lines(message)])


async def deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await _by_id(admin, arguments)
    address, client = await _member(admin, arguments)
    result = await admin.consume_directly(address, arguments.group, client, message)
    lines = facts([("client", client), ("result", result.outcome), ("took", f"{result.took_ms} ms"),
                   ("remark", result.remark)])  # fmt: skip
    return Shown(result, lines, is_failure=result.outcome != "CR_SUCCESS")


async def _member(admin: AdminClient, arguments: argparse.Namespace) -> tuple[str, str]:
    """The address of a broker and a member of the group that is connected to it."""
    masters = await admin.masters()
    for name, each in (await admin.members(arguments.group)).by_broker.items():
        for one in each.connection_set:
            if arguments.client in (None, one.client_id):
                return masters[name], one.client_id
    raise NotThere(f"{arguments.group} has no member" + (f" {arguments.client}" if arguments.client else ""))


async def plan_send(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = _message(arguments)
    masters = await admin.topic_masters(arguments.topic)
    text = f"send {len(message.body):,} bytes to {arguments.topic} at {arguments.broker or next(iter(masters))}"
    return Shown({"topic": message.topic, "bytes": len(message.body), "properties": message.properties}, [text])


async def send(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = _message(arguments)
    masters = await admin.topic_masters(arguments.topic)
    name = arguments.broker or next(iter(masters))
    if name not in masters:
        raise NotThere(f"{arguments.topic} has no queue at {name}; it is at {', '.join(masters)}")
    result = await admin.send_message(masters[name], message, arguments.queue or 0, broker_name=name)
    lines = facts(
        [
            ("status", result.status.name),
            ("id", result.msg_id),
            ("offset id", result.offset_msg_id),
            ("queue", f"{name} {result.queue.queue_id}, offset {result.queue_offset}"),
        ]
    )
    return Shown({"status": result.status.name, "result": result}, lines)


def _message(arguments: argparse.Namespace) -> Message:
    if (arguments.body is None) == (arguments.file is None):
        raise ConfigError("give the body as text, or --file NAME (- is standard input)")
    if arguments.file is None:
        body = arguments.body.encode()
    else:
        body = sys.stdin.buffer.read() if str(arguments.file) == "-" else arguments.file.read_bytes()
    return Message(
        arguments.topic,
        body,
        tags=arguments.tag,
        keys=arguments.key or (),
        properties=dict(arguments.property or ()),
        delay_level=arguments.delay_level,
    )


# -- options ----------------------------------------------------------------------------------------------------------


def _topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")


def _topic_id(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("id", metavar="ID", help="unique id or offset id")


def _query_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("-k", "--key", required=True, metavar="KEY")
    parser.add_argument("--limit", type=positive, default=64, metavar="N", help="default: %(default)s")
    _times(parser)


def _times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="begin", type=parse_time, metavar="TIME", help="2h (so long ago), 10:30, …")
    parser.add_argument("--to", dest="end", type=parse_time, metavar="TIME")


def _at_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("queue", type=int, metavar="QUEUE", help="queue id")
    parser.add_argument("offset", type=int, metavar="OFFSET")
    parser.add_argument("-b", "--broker", metavar="NAME")


def _reading(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("--queue", type=int, metavar="ID", help="only this queue id")
    parser.add_argument("--tag", metavar="TAG", help="only this tag")
    parser.add_argument("--limit", type=positive, metavar="N", help="stop after N messages")
    parser.add_argument("--body", action="store_true", help="whole bodies, as they are")


def _print_arguments(parser: argparse.ArgumentParser) -> None:
    _reading(parser)
    _times(parser)


def _tail_arguments(parser: argparse.ArgumentParser) -> None:
    _reading(parser)
    parser.add_argument("--last", type=int, default=0, metavar="N", help="begin with the last N of each queue")
    parser.set_defaults(begin=-1, end=None)


def _trace_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="unique id")
    parser.add_argument("--trace-topic", default=TRACE_TOPIC, metavar="TOPIC", help="default: %(default)s")


def _resend_arguments(parser: argparse.ArgumentParser) -> None:
    _topic_id(parser)
    parser.add_argument("--to", metavar="TOPIC", help="default: the same; of dead letters, where they came from")


def _deliver_arguments(parser: argparse.ArgumentParser) -> None:
    _topic_id(parser)
    parser.add_argument("-g", "--group", required=True, metavar="GROUP")
    parser.add_argument("--client", metavar="ID", help="this member; default: any")


def _send_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("body", nargs="?", metavar="TEXT")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="body from a file; - is standard input")
    parser.add_argument("--tag", metavar="TAG")
    parser.add_argument("-k", "--key", action="append", metavar="KEY", help="repeatable")
    parser.add_argument("-p", "--property", action="append", type=parse_pair, metavar="NAME=VALUE", help="repeatable")
    parser.add_argument("--delay-level", type=int, default=0, metavar="N", help="1 to 18")
    parser.add_argument("-b", "--broker", metavar="NAME")
    parser.add_argument("--queue", type=int, metavar="ID", help="default: 0")


COMMANDS = {
    "messages": {
        "show": Command("one message by id, and who consumed it", show_message, _topic_id),
        "query": Command("messages with a key", query_messages, _query_arguments),
        "at": Command("the message at a place of a queue", message_at, _at_arguments),
        "print": Command("messages of a topic, queue after queue", print_messages, _print_arguments),
        "tail": Command("messages as they come", tail, _tail_arguments),
        "trace": Command("what clients with tracing on did with a message", show_trace, _trace_arguments),
        "resend": Command("send a copy of a message", resend, _resend_arguments, plan_resend),
        "deliver": Command("hand a message to a running consumer", deliver, _deliver_arguments, plan_deliver),
    },
    "send": {"": Command("send a message", send, _send_arguments, plan_send)},
}
