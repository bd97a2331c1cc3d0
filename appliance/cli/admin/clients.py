"""`gantry admin clients | consumers | producers`: clients as they are connected now."""

from __future__ import annotations

import argparse
from typing import Any

from appliance.cli.admin.cluster import choose_brokers
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere, troubles_of
from appliance.cli.admin.output import ago, duration, when
from appliance.cli.tables import Cell, facts, table
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.clients import OpenConnection
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.bodies import ProxiedClient


async def show_consumers(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """What every member of a group says of itself."""
    members = await admin.groups.members(arguments.group)
    masters = await admin.cluster.masters()
    asked = {one.client_id: masters[name] for name, each in members.by_broker.items() for one in each.connection_set}
    wanted = [one for one in sorted(asked) if arguments.client is None or one == arguments.client]
    infos, failures = await ask_each(
        wanted,
        lambda client: admin.clients.running_info_at(
            asked[client], arguments.group, client, with_stacks=arguments.stacks
        ),
    )
    if arguments.client is not None and not wanted:
        raise NotThere(f"{arguments.client} is not a member of {arguments.group}")
    if not members.is_online and arguments.group not in await admin.groups.configs():
        raise NotThere(f"there is no consumer group {arguments.group}")
    lines: list[str] = []
    for client, info in infos.items():
        lines += [*([""] if lines else []), *_consumer_lines(client, info)]
    lines = lines or [f"{arguments.group} has no member"]
    troubles = [*troubles_of(members.failures), *(f"{client}: {failure}" for client, failure in failures.items())]
    return Shown(infos, lines, troubles)


def _consumer_lines(client: str, info: dict[str, Any]) -> list[str]:
    properties = info.get("properties") or {}
    started = properties.get("PROP_CONSUMER_START_TIMESTAMP", "")
    lines = facts(
        [
            ("client", client),
            ("version", properties.get("PROP_CLIENT_VERSION")),
            ("started", when(int(started)) if str(started).isdecimal() else None),
            ("ordered", "yes" if properties.get("PROP_CONSUMEORDERLY") == "true" else "no"),
            ("workers", properties.get("PROP_THREADPOOL_CORE_SIZE")),
        ]
    )
    status = [
        (topic, one.get("pullTPS"), one.get("consumeOKTPS"), one.get("consumeFailedTPS"), one.get("consumeRT"))
        for topic, one in sorted((info.get("statusTable") or {}).items())
    ]
    lines += ["", *table(("topic", "pulled/s", "done/s", "failed/s", "ms a call"), status)]
    queues = [
        (queue.topic, queue.broker_name, queue.queue_id, held.get("commitOffset"), held.get("cachedMsgCount"),
         ago(held.get("lastPullTimestamp")), ago(held.get("lastConsumeTimestamp")))
        for queue, held in sorted((info.get("mqTable") or {}).items()) if isinstance(queue, MessageQueue)
    ]  # fmt: skip
    columns = ("topic", "broker", "queue", "consumed", "held", "pulled", "consumed last")
    lines += ["", *table(columns, queues, empty="holds no queue")]
    busy = [
        (one.get("topic"), one.get("queueId"), one.get("queueOffset"), ", ".join(one.get("msgIds") or ()),
         duration(one.get("heldMs")))
        for one in info.get("workers") or ()
    ]  # fmt: skip
    if busy:
        lines += ["", *table(("in progress", "queue", "offset", "messages", "for"), busy)]
    if info.get("jstack"):
        lines += ["", *str(info["jstack"]).splitlines()]
    return lines


async def show_producers(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await admin.cluster.masters()
    found, failures = await ask_each(masters, lambda name: admin.clients.producers_at(masters[name]))
    if failures and not found:
        raise next(iter(failures.values()))
    rows = sorted(
        (group, one.client_id, one.remote_ip.lstrip("/"), one.language, name, ago(one.last_update_timestamp))
        for name, groups in found.items()
        for group, members in groups.items()
        for one in members
        if arguments.group in (None, group)
    )
    lines = table(("group", "client", "address", "language", "at", "last heartbeat"), rows, empty="no producer")
    return Shown(found, lines, troubles_of(failures))


async def list_clients(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Every connection of every broker, and the clients behind proxies; a GantryMQ broker's own request."""
    masters = {each.name: each.address for each in await choose_brokers(admin, arguments.broker)}
    found, failures = await ask_each(masters, lambda name: admin.clients.connections_at(masters[name]))
    rows: list[list[Cell]] = []
    for name, connections in sorted(found.items()):
        for one in connections:
            if arguments.client in (None, *one.client_ids):
                rows.append(_connection(name, one))
            rows += [
                _behind_proxy(name, one, each) for each in one.proxied if arguments.client in (None, each.client_id)
            ]
    columns = ("client", "address", "at", "language", "tls", "account", "since", "requests", "groups")
    return Shown(found, table(columns, rows, empty="no client"), troubles_of(failures))


def _connection(broker: str, one: OpenConnection) -> list[Cell]:
    groups = [*one.producer_groups, *one.consumer_groups]
    return [
        ", ".join(one.client_ids) or "(no name)", one.address, broker, one.language, "yes" if one.tls else "no",
        one.account, when(one.opened_at), one.requests, ", ".join(groups),
    ]  # fmt: skip


def _behind_proxy(broker: str, proxy: OpenConnection, one: ProxiedClient) -> list[Cell]:
    at, language = f"{broker} by proxy {proxy.proxy}", f"{one.language} {one.version}"
    groups = [one.group] if one.group else one.topics
    return [one.client_id, one.address, at, language, None, proxy.account, None, None, ", ".join(groups)]


async def plan_disconnect(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """The connections that would be closed. NotThere when there is none."""
    shown = await list_clients(admin, arguments)
    count = sum(arguments.client in one.client_ids for each in shown.document.values() for one in each)
    if not count and not shown.troubles:
        raise NotThere(f"{arguments.client} is not connected; `gantry admin clients list` shows the connected ones")
    return shown


async def disconnect(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = {each.name: each.address for each in await choose_brokers(admin, arguments.broker)}
    counts, failures = await ask_each(
        masters, lambda name: admin.clients.disconnect_at(masters[name], client_id=arguments.client)
    )
    lines = [f"{name}: {count} closed" for name, count in sorted(counts.items())]
    return Shown(counts, [*lines, "a client connects again by itself"], troubles_of(failures))


def _clients_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", nargs="?", metavar="CLIENT", help="only this client id")
    parser.add_argument("-b", "--broker", action="append", metavar="BROKER", help="only this broker; again for more")


def _disconnect_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("client", metavar="CLIENT", help="its client id")
    parser.add_argument("-b", "--broker", action="append", metavar="BROKER", help="only this broker; again for more")


def _consumers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("client", nargs="?", metavar="CLIENT", help="only this member")
    parser.add_argument("--stacks", action="store_true", help="the stacks of its threads and listener calls too")


def _producers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="GROUP", help="only this producer group")


COMMANDS = {
    "clients": {
        "list": Command("connections: client, address, language, traffic", list_clients, _clients_arguments),
        "disconnect": Command(
            "close a client's connections", disconnect, _disconnect_arguments, plan=plan_disconnect, loses=True
        ),
    },
    "consumers": {"": Command("what each member of a group is doing", show_consumers, _consumers_arguments)},
    "producers": {"": Command("connected producers", show_producers, _producers_arguments)},
}
