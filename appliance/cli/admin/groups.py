"""`gantry admin groups`."""

from __future__ import annotations

import argparse

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere, troubles_of
from appliance.cli.admin.options import add_cluster, positive
from appliance.cli.admin.output import ago, duration, when
from appliance.cli.tables import Cell, table
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.results import GroupProgress
from gantrymq.message.topics import SYSTEM_GROUP_PREFIX, check_group
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig

_KINDS = {"POP": "POP", "PULL": "pulling"}
_ORDERS = {True: "yes", False: "no", None: "by topic"}
TOOL_GROUPS = frozenset({"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONSAPI_OWNER"})


def is_system_group(group: str) -> bool:
    return group in TOOL_GROUPS or group.startswith((SYSTEM_GROUP_PREFIX, "CID_ONS"))


async def list_groups(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Groups with their members and lag."""
    known = await admin.groups.configs(arguments.cluster)
    groups = [group for group in known if arguments.all or not is_system_group(group)]
    members, _ = await ask_each(groups, lambda group: admin.groups.members(group, arguments.cluster))
    progress, failures = await ask_each(groups, lambda group: admin.offsets.progress(group, cluster=arguments.cluster))
    rows: list[list[Cell]] = []
    documents = []
    for group in groups:
        found = members.get(group)
        clients = len(found.client_ids) if found is not None else None
        place = progress.get(group)
        topics = sorted({each.queue.topic for each in place.queues}) if place else []
        keeps = found is not None and found.is_broadcasting
        lag = place.lag if place and not keeps else None
        rows.append(
            [
                group,
                clients,
                "kept by members" if keeps else lag,
                place.consume_tps if place else None,
                ", ".join(topics) or None,
            ]
        )
        documents.append(
            {"group": group, "members": clients, "isBroadcasting": keeps, "lag": lag, "topics": topics,
             "brokers": known[group]}
        )  # fmt: skip
    lines = table(
        ("group", "members", "lag", "delivered/s", "topics"), rows, empty="no groups; --all shows system groups too"
    )
    return Shown(documents, lines, [f"{group}: {failure}" for group, failure in failures.items()])


async def show_group(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    known = (await admin.groups.configs()).get(arguments.group)
    if known is None:
        raise NotThere(f"there is no consumer group {arguments.group}")
    members = await admin.groups.members(arguments.group)
    masters = await admin.cluster.masters()
    leases, _ = await ask_each(  # brokers of Apache don't know the request
        [name for name in known if name in masters],
        lambda name: admin.groups.leases_at(masters[name], arguments.group, 0),
    )
    settings = [
        (name, config.consume_enable, config.retry_max_times, config.retry_queue_nums, config.consume_broadcast_enable,
         _ORDERS[config.consume_message_orderly], leases[name].total if name in leases else None)
        for name, config in known.items()
    ]  # fmt: skip
    lines = table(("broker", "enabled", "retries", "retry queues", "broadcast", "order", "in flight"), settings)
    modes = [(topic, name, mode) for name, each in leases.items() for topic, mode in sorted(each.modes.items())]
    if modes:
        lines += ["", *table(("topic", "broker", "mode"), modes)]
    subscriptions = {
        topic: data for each in members.by_broker.values() for topic, data in sorted(each.subscription_table.items())
    }
    rows = [(topic, data.expression_type, data.sub_string) for topic, data in subscriptions.items()]
    lines += ["", *table(("subscribes to", "by", "expression"), rows, empty="no members")]
    clients = {
        one.client_id: (one.client_id, one.client_addr, one.language, str(one.version))
        for each in members.by_broker.values()
        for one in each.connection_set
    }
    if clients:
        lines += ["", *table(("member", "address", "language", "version"), [clients[one] for one in sorted(clients)])]
    disagreement = [name for name, each in members.by_broker.items() if getattr(each, "disagreement", None)]
    troubles = troubles_of(members.failures)
    if disagreement:
        troubles.append(f"the members of {arguments.group} subscribe to different things: messages get lost that way")
    document = {"group": arguments.group, "brokers": known, "members": members.by_broker, "leases": leases}
    return Shown(document, lines, troubles)


async def show_lag(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    progress = await admin.offsets.progress(arguments.group, arguments.topic, with_clients=arguments.clients)
    columns = ["topic", "broker", "queue", "end", "consumed", "lag", "in flight", "waits", "last consumed"]
    rows: list[list[Cell]] = []
    for each in progress.queues:
        row: list[Cell] = [
            each.queue.topic, each.queue.broker_name, each.queue.queue_id, each.broker_offset, each.consumer_offset,
            each.lag, each.in_flight, duration(each.lag_ms or None), ago(each.last_consumed_ms),
        ]  # fmt: skip
        rows.append([*row, each.client_id] if arguments.clients else row)
    if arguments.clients:
        columns.append("client")
    lines = table(columns, rows, empty=f"{arguments.group} has no offsets{_on(arguments.topic)}")
    is_broadcasting = (await admin.groups.members(arguments.group)).is_broadcasting
    if is_broadcasting:
        lines.append("it broadcasts: each member keeps its own offsets, so the brokers know no lag")
    elif rows:
        lines.append(_sum(progress))
    document = {
        "group": arguments.group,
        "isBroadcasting": is_broadcasting,
        "lag": None if is_broadcasting else progress.lag,
        "consumeTps": progress.consume_tps,
        "queues": [
            {
                "topic": each.queue.topic, "broker": each.queue.broker_name, "queueId": each.queue.queue_id,
                "brokerOffset": each.broker_offset, "consumerOffset": each.consumer_offset, "lag": each.lag,
                "inFlight": each.in_flight, "lagMs": each.lag_ms, "lastConsumed": each.last_consumed_ms,
                "clientId": each.client_id,
            }
            for each in progress.queues
        ],
    }  # fmt: skip
    is_unknown = not rows and arguments.group not in await admin.groups.configs()
    if is_unknown:
        lines = [f"there is no consumer group {arguments.group}"]
    return Shown(document, lines, troubles_of(progress.failures), is_failure=is_unknown)


async def show_leases(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """What the group's members have and did not acknowledge."""
    found = await admin.groups.leases(arguments.group, count=arguments.count)
    if not any(each.modes or each.total for each in found.values()):
        if arguments.group not in await admin.groups.configs():
            raise NotThere(f"there is no consumer group {arguments.group}")
        return Shown(found, [f"{arguments.group} pops no topic now"])
    modes = [(topic, name, mode) for name, each in found.items() for topic, mode in sorted(each.modes.items())]
    lines = table(("topic", "broker", "mode"), modes, empty="no mode is set, and nothing is popped now")
    rows = [
        (one.topic, name, one.queue_id, one.offset, one.message_id or None, one.client or None, ago(one.popped_at),
         when(one.due_at), one.deliveries)
        for name, each in found.items() for one in each.leases
    ]  # fmt: skip
    columns = ("in flight", "broker", "queue", "offset", "message", "client", "delivered", "until", "deliveries")
    lines += ["", *table(columns, rows, empty="nothing is in flight")]
    total = sum(each.total for each in found.values())
    return Shown(
        found, [*lines, *([f"{total:,} in flight, the oldest {len(rows)} shown"] if total > len(rows) else [])]
    )


async def plan_mode(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await admin.topics.masters(arguments.topic)
    text = f"{arguments.group} consumes {arguments.topic} by {_KINDS[arguments.mode]} at {', '.join(sorted(masters))}"
    document = {"group": arguments.group, "topic": arguments.topic, "mode": arguments.mode, "brokers": sorted(masters)}
    return Shown(document, [text])


async def set_mode(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    if arguments.group not in await admin.groups.configs():
        raise NotThere(f"there is no consumer group {arguments.group}")
    done = await admin.groups.set_mode(arguments.group, arguments.topic, arguments.mode)
    return Shown(
        {"group": arguments.group, "topic": arguments.topic, "mode": arguments.mode, "brokers": done},
        [f"{arguments.group} consumes {arguments.topic} by {_KINDS[arguments.mode]} at {', '.join(sorted(done))}"],
    )


def _on(topic: str | None) -> str:
    return f" on {topic}" if topic else ""


def _sum(progress: GroupProgress) -> str:
    unknown = sum(each.lag is None for each in progress.queues)
    text = f"lag {progress.lag:,}" if progress.lag is not None else "lag unknown"
    if unknown and progress.lag is not None:
        text += f", and unknown in {unknown} queue(s) the group never wrote an offset for"
    return f"{text}; {progress.consume_tps:,.1f} messages per second delivered to members"


async def plan_create(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    check_group(arguments.group)
    masters = await admin.cluster.masters(arguments.cluster)
    known = (await admin.groups.configs(arguments.cluster)).get(arguments.group, {})
    config = _config(arguments)
    rows = [(name, "change" if name in known else "create", config.consume_enable, config.retry_max_times)
            for name in masters]  # fmt: skip
    return Shown({"group": config, "brokers": list(masters)}, table(("broker", "", "enabled", "retries"), rows))


def _config(arguments: argparse.Namespace) -> SubscriptionGroupConfig:
    return SubscriptionGroupConfig(
        arguments.group,
        consume_enable=not arguments.disabled,
        retry_max_times=arguments.retries,
        retry_queue_nums=arguments.retry_queues,
        consume_broadcast_enable=not arguments.no_broadcast,
        consume_message_orderly=None if arguments.order is None else arguments.order == "yes",
    )


async def create_group(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    check_group(arguments.group)
    done = await admin.groups.create(_config(arguments), arguments.cluster)
    return Shown({"group": arguments.group, "brokers": done}, [f"{arguments.group} set at {', '.join(done)}"])


async def plan_delete(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    known = (await admin.groups.configs(arguments.cluster)).get(arguments.group)
    progress = await admin.offsets.progress(arguments.group)
    if known is None and not progress.queues:
        raise NotThere(f"there is no consumer group {arguments.group}")
    known = known or {}  # offsets may be all there is of it
    members = await admin.groups.members(arguments.group)
    lines = [f"delete {arguments.group} with its offsets, retry and dead-letter topics"]
    if arguments.keep:
        lines = [f"delete the settings of {arguments.group}; offsets and topics stay"]
    if members.is_online:
        lines.append(f"{len(members.client_ids)} member(s) consume right now")
    if progress.queues:
        lines.append(_sum(progress))
    document = {"group": arguments.group, "brokers": list(known), "members": members.client_ids, "lag": progress.lag}
    return Shown(document, lines)


async def delete_group(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    done = await admin.groups.delete(
        arguments.group, arguments.cluster, remove_offsets=not arguments.keep, remove_topics=not arguments.keep
    )
    return Shown({"group": arguments.group, "brokers": done}, [f"{arguments.group} deleted at {', '.join(done)}"])


def _group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="RocketMQ's own groups too")
    add_cluster(parser)


def _lag_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("-t", "--topic", metavar="TOPIC", help="only this topic")
    parser.add_argument("--clients", action="store_true", help="ask the members which queues they hold")


def _leases_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument(
        "--count", type=positive, default=100, metavar="N", help="messages of each broker (default: %(default)s)"
    )


def _mode_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "mode", choices=tuple(_KINDS), help="POP: RocketMQ 5's clients and PopConsumer; PULL: all others"
    )


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("--retries", type=positive, default=16, metavar="N", help="default: %(default)s")
    parser.add_argument("--retry-queues", type=positive, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--disabled", action="store_true", help="create it paused")
    parser.add_argument(
        "--order", choices=("yes", "no"), help="of RocketMQ 5's gRPC clients; default: as the topic's type says"
    )
    parser.add_argument("--no-broadcast", action="store_true", help="don't allow broadcasting")
    add_cluster(parser)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("--keep", action="store_true", help="keep offsets, retry and dead-letter topics")
    add_cluster(parser)


COMMANDS = {
    "groups": {
        "list": Command("every group with members and lag", list_groups, _list_arguments),
        "show": Command("settings, subscriptions and members of a group", show_group, _group),
        "lag": Command("a group's offset and lag in each queue", show_lag, _lag_arguments),
        "leases": Command("what a group that pops has in flight", show_leases, _leases_arguments),
        "mode": Command(
            "change a group between pulling and POP, without losing messages", set_mode, _mode_arguments, plan_mode
        ),
        "create": Command(
            "create a group, or replace its settings",
            create_group,
            _create_arguments,
            plan_create,
            aliases=("set", "update"),
        ),
        "delete": Command(
            "delete a group everywhere", delete_group, _delete_arguments, plan_delete, loses=True, aliases=("remove",)
        ),
    },
}
