"""`gantry admin send`, and `messages resend | deliver`: putting messages on their way."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.admin.options import not_negative, parse_pair, parse_time
from appliance.cli.admin.output import message_lines, when
from appliance.cli.tables import facts
from gantrymq.byte_size import readable
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.properties import decode_properties
from gantrymq.remoting.bodies import PERM_WRITE

DELAY_LEVELS = 18


async def message_by_id(admin: AdminClient, arguments: argparse.Namespace) -> MessageExt:
    """The message that topic and id of the command name. NotThere when there is none."""
    message = await admin.messages.find_by_id(arguments.topic, arguments.id)
    if message is None:
        raise NotThere(f"{arguments.topic} has no message {arguments.id} (any more)")
    return message


def add_topic_and_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("id", metavar="ID", help="unique id or offset id")


async def plan_resend(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
    return Shown(message, ["send a copy of:", *message_lines(message)])


async def resend(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    result = await admin.messages.resend(await message_by_id(admin, arguments), topic=arguments.to)
    return Shown(result, [f"sent to {result.queue.topic} as {result.msg_id}"])


async def plan_deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
    _, client = await _member(admin, arguments)
    return Shown(message, [f"hand to {client} of {arguments.group}:", *message_lines(message)])


async def deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
    address, client = await _member(admin, arguments)
    result = await admin.messages.consume_directly_at(address, arguments.group, client, message)
    lines = facts([("client", client), ("result", result.outcome), ("took", f"{result.took_ms} ms"),
                   ("remark", result.remark)])  # fmt: skip
    return Shown(result, lines, is_failure=result.outcome != "CR_SUCCESS")


async def _member(admin: AdminClient, arguments: argparse.Namespace) -> tuple[str, str]:
    """The address of a broker and a member of the group that is connected to it."""
    masters = await admin.cluster.masters()
    for name, each in (await admin.groups.members(arguments.group)).by_broker.items():
        for one in each.connection_set:
            if arguments.client in (None, one.client_id):
                return masters[name], one.client_id
    raise NotThere(f"{arguments.group} has no member" + (f" {arguments.client}" if arguments.client else ""))


async def plan_send(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = _message(arguments)
    name, _, queue_id = await _target(admin, arguments)
    text = f"send {readable(len(message.body))} to {arguments.topic} at {name}, queue {queue_id}"
    return Shown(
        {"topic": message.topic, "broker": name, "queueId": queue_id, "bytes": len(message.body),
         "properties": decode_properties(message.encoded_properties())},
        [text, *([f"to be delivered {_later(arguments)}"] if message.is_delayed else [])],
    )  # fmt: skip


async def _target(admin: AdminClient, arguments: argparse.Namespace) -> tuple[str, str, int]:
    """Name and address of the broker, and the queue. NotThere when the topic has no such place."""
    route = await admin.topics.route(arguments.topic)
    masters = {each.broker_name: each.master_address for each in route.broker_datas}
    writable = {each.broker_name: each.write_queue_nums for each in route.queue_datas if each.perm & PERM_WRITE}
    places = {name: address for name, address in sorted(masters.items()) if address and name in writable}
    if not places:
        raise NotThere(f"{arguments.topic} has no broker that may be written to: see `gantry admin topics route`")
    name = arguments.broker or next(iter(places))
    if name not in places:
        raise NotThere(f"{arguments.topic} has no queue at {name}; it is at {', '.join(places)}")
    queue_id = arguments.queue or 0
    if queue_id >= writable[name]:
        raise NotThere(f"{arguments.topic} has no queue {queue_id} at {name}: queues are 0 to {writable[name] - 1}")
    return name, places[name], queue_id


async def send(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = _message(arguments)
    name, address, queue_id = await _target(admin, arguments)
    result = await admin.messages.send_at(address, message, queue_id, broker_name=name)
    lines = facts(
        [
            ("status", result.status.name),
            ("id", result.msg_id),
            ("offset id", result.offset_msg_id),
            ("queue", f"{name} {result.queue.queue_id}, offset {result.queue_offset}"),
            *([("delivered", _later(arguments))] if message.is_delayed else []),
        ]
    )
    return Shown({"status": result.status.name, "result": result}, lines)


def _message(arguments: argparse.Namespace) -> Message:
    """The message that the command describes. Raises ConfigError."""
    if (arguments.body is None) == (arguments.file is None):
        raise ConfigError("give the body as TEXT, or --file FILE (- is standard input)")
    given = (arguments.delay_level, arguments.delay_seconds, arguments.deliver_at)
    if sum(each is not None for each in given) > 1:
        raise ConfigError("give one of --delay-level, --delay-seconds and --deliver-at")
    return Message(
        arguments.topic,
        _body(arguments),
        tags=arguments.tag,
        keys=arguments.key or (),
        properties=dict(arguments.property or ()),
        delay_level=arguments.delay_level or 0,
        delay_seconds=arguments.delay_seconds,
        deliver_at=arguments.deliver_at,
    )


def _body(arguments: argparse.Namespace) -> bytes:
    if arguments.file is None:
        return str(arguments.body).encode(errors="surrogateescape")
    if str(arguments.file) == "-":
        return sys.stdin.buffer.read()
    try:
        return bytes(arguments.file.read_bytes())
    except OSError as exc:
        raise ConfigError(f"--file {arguments.file}: {exc.strerror}") from exc


def _later(arguments: argparse.Namespace) -> str:
    if arguments.delay_seconds is not None:
        return f"after {arguments.delay_seconds:g} s"
    if arguments.deliver_at is not None:
        return f"at {when(round(arguments.deliver_at * 1000))}"
    if arguments.delay_level is not None:
        return f"after delay level {arguments.delay_level}"
    return "later, as its properties say"


def parse_delay(text: str) -> float:
    """Seconds above 0, to the millisecond."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.001 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, such as 90 or 2.5")
    return seconds


def parse_deliver_at(text: str) -> float:
    """A time to come, as seconds since the epoch."""
    tomorrow = time.strftime("%Y-%m-%dT10:00", time.localtime(time.time() + 24 * 3600))
    try:
        moment_ms = parse_time(text)
    except argparse.ArgumentTypeError as exc:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time: use {tomorrow}, 23:30 (today), or milliseconds"
        ) from exc
    if moment_ms <= time.time() * 1000:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time in the future: use {tomorrow}, or --delay-seconds 7200"
        )
    return moment_ms / 1000


def parse_delay_level(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= DELAY_LEVELS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a delay level: use 1 to {DELAY_LEVELS} (as set up: 1s to 2h)"
        )
    return int(text)


def _resend_arguments(parser: argparse.ArgumentParser) -> None:
    add_topic_and_id(parser)
    parser.add_argument("--to", metavar="TOPIC", help="default: the same; for a dead letter, its original topic")


def _deliver_arguments(parser: argparse.ArgumentParser) -> None:
    add_topic_and_id(parser)
    parser.add_argument("-g", "--group", required=True, metavar="GROUP")
    parser.add_argument("--client", metavar="ID", help="this member; default: any")


def _send_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("body", nargs="?", metavar="TEXT", help="the body, in UTF-8")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="body from a file; - is standard input")
    parser.add_argument("--tag", metavar="TAG", help="tag that subscriptions filter by")
    parser.add_argument("-k", "--key", action="append", metavar="KEY", help="key that finds the message; repeatable")
    parser.add_argument(
        "-p", "--property", action="append", type=parse_pair, metavar="NAME=VALUE", help="repeatable: a property"
    )
    parser.add_argument(
        "--delay-seconds", type=parse_delay, metavar="S",
        help="deliver it after S seconds, such as 2.5 (RocketMQ 4.9 brokers deliver at once)",
    )  # fmt: skip
    parser.add_argument(
        "--deliver-at",
        type=parse_deliver_at,
        metavar="TIME",
        help="deliver it at this time: 2030-01-31T10:00, 23:30 (today)",
    )
    parser.add_argument(
        "--delay-level",
        type=parse_delay_level,
        metavar="N",
        help=f"deliver it after a delay level, 1 to {DELAY_LEVELS}",
    )
    parser.add_argument("-b", "--broker", metavar="NAME", help="to this broker; default: the first that has the topic")
    parser.add_argument("--queue", type=not_negative, metavar="ID", help="to this queue; default: 0")


AGAIN = {
    "resend": Command("send a copy of a message", resend, _resend_arguments, plan_resend),
    "deliver": Command("deliver a message to a running consumer", deliver, _deliver_arguments, plan_deliver),
}
SEND = Command("send a message", send, _send_arguments, plan_send)
