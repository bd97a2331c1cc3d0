"""`gantry admin send`, and `messages resend | deliver`: putting messages on their way."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from appliance.cli.admin_command import Command, NotThere, Shown, parse_pair
from appliance.cli.admin_output import facts, message_lines
from gantrymq.client.admin import AdminClient
from gantrymq.errors import ConfigError
from gantrymq.message.model import Message, MessageExt


async def message_by_id(admin: AdminClient, arguments: argparse.Namespace) -> MessageExt:
    """The message that topic and id of the command name. NotThere when there is none."""
    message = await admin.find_by_id(arguments.topic, arguments.id)
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
    result = await admin.resend(await message_by_id(admin, arguments), topic=arguments.to)
    return Shown(result, [f"sent to {result.queue.topic} as {result.msg_id}"])


async def plan_deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
    _, client = await _member(admin, arguments)
    return Shown(message, [f"hand to {client} of {arguments.group}:", *message_lines(message)])


async def deliver(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    message = await message_by_id(admin, arguments)
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


def _resend_arguments(parser: argparse.ArgumentParser) -> None:
    add_topic_and_id(parser)
    parser.add_argument("--to", metavar="TOPIC", help="default: the same; of dead letters, where they came from")


def _deliver_arguments(parser: argparse.ArgumentParser) -> None:
    add_topic_and_id(parser)
    parser.add_argument("-g", "--group", required=True, metavar="GROUP")
    parser.add_argument("--client", metavar="ID", help="this member; default: any")


def _send_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("body", nargs="?", metavar="TEXT")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="body from a file; - is standard input")
    parser.add_argument("--tag", metavar="TAG")
    parser.add_argument("-k", "--key", action="append", metavar="KEY", help="repeatable")
    parser.add_argument("-p", "--property", action="append", type=parse_pair, metavar="NAME=VALUE", help="repeatable")
    parser.add_argument("--delay-level", type=int, default=0, metavar="N", help="1 to 18")
    parser.add_argument("-b", "--broker", metavar="NAME")
    parser.add_argument("--queue", type=int, metavar="ID", help="default: 0")


AGAIN = {
    "resend": Command("send a copy of a message", resend, _resend_arguments, plan_resend),
    "deliver": Command("hand a message to a running consumer", deliver, _deliver_arguments, plan_deliver),
}
SEND = Command("send a message", send, _send_arguments, plan_send)
