"""`gantry admin groups | consumers | producers`."""

from __future__ import annotations

import argparse
from typing import Any

from appliance.cli.admin_command import Command, NotThere, Shown, add_cluster, positive, troubles_of
from appliance.cli.admin_output import Cell, ago, duration, facts, table, when
from gantrymq.client.admin import AdminClient
from gantrymq.client.admin_calls import ask_each
from gantrymq.client.admin_results import GroupProgress
from gantrymq.message.model import MessageQueue
from gantrymq.message.topics import SYSTEM_GROUP_PREFIX, check_group
from gantrymq.remoting.bodies import SubscriptionGroupConfig

TOOL_GROUPS = frozenset({"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONSAPI_OWNER"})


def is_system_group(group: str) -> bool:
    return group in TOOL_GROUPS or group.startswith((SYSTEM_GROUP_PREFIX, "CID_ONS"))


async def list_groups(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Groups with their members and lag."""
    known = await admin.groups(arguments.cluster)
    groups = [group for group in known if arguments.all or not is_system_group(group)]
    members, _ = await ask_each(groups, lambda group: admin.members(group, arguments.cluster))
    progress, failures = await ask_each(groups, lambda group: admin.progress(group, cluster=arguments.cluster))
    rows: list[list[Cell]] = []
    documents = []
    for group in groups:
        found = members.get(group)
        clients = len(found.client_ids) if found is not None else None
        place = progress.get(group)
        topics = sorted({each.queue.topic for each in place.queues}) if place else []
        lag = place.lag if place else None
        rows.append([group, clients, lag, place.consume_tps if place else None, ", ".join(topics)])
        documents.append({"group": group, "members": clients, "lag": lag, "topics": topics, "brokers": known[group]})
    lines = table(
        ("group", "members", "lag", "out/s", "topics"), rows, empty="no groups; --all shows system groups too"
    )
    return Shown(documents, lines, [f"{group}: {failure}" for group, failure in failures.items()])


async def show_group(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    known = (await admin.groups()).get(arguments.group)
    if known is None:
        raise NotThere(f"there is no consumer group {arguments.group}")
    members = await admin.members(arguments.group)
    settings = [
        (name, config.consume_enable, config.retry_max_times, config.retry_queue_nums, config.consume_broadcast_enable)
        for name, config in known.items()
    ]
    lines = table(("broker", "enabled", "retries", "retry queues", "broadcast"), settings)
    subscriptions = {
        topic: data for each in members.by_broker.values() for topic, data in sorted(each.subscription_table.items())
    }
    rows = [(topic, data.expression_type, data.sub_string) for topic, data in subscriptions.items()]
    lines += ["", *table(("subscribes to", "by", "expression"), rows, empty="no member is connected")]
    clients = {
        one.client_id: (one.client_id, one.client_addr, one.language, _version(one.version))
        for each in members.by_broker.values()
        for one in each.connection_set
    }
    if clients:
        lines += ["", *table(("member", "address", "language", "version"), [clients[one] for one in sorted(clients)])]
    disagreement = [name for name, each in members.by_broker.items() if getattr(each, "disagreement", None)]
    troubles = troubles_of(members.failures)
    if disagreement:
        troubles.append(f"the members of {arguments.group} subscribe to different things: messages get lost that way")
    document = {"group": arguments.group, "brokers": known, "members": members.by_broker}
    return Shown(document, lines, troubles)


def _version(version: int) -> str:
    return str(version)


async def show_lag(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    progress = await admin.progress(arguments.group, arguments.topic, with_clients=arguments.clients)
    columns = ["topic", "broker", "queue", "end", "consumed", "lag", "waits", "last consumed"]
    rows: list[list[Cell]] = []
    for each in progress.queues:
        row: list[Cell] = [
            each.queue.topic, each.queue.broker_name, each.queue.queue_id, each.broker_offset, each.consumer_offset,
            each.lag, duration(each.lag_ms or None), ago(each.last_consumed_ms),
        ]  # fmt: skip
        rows.append([*row, each.client_id] if arguments.clients else row)
    if arguments.clients:
        columns.append("client")
    lines = table(columns, rows, empty=f"{arguments.group} has no offsets{_on(arguments.topic)}")
    if rows:
        lines.append(_sum(progress))
    document = {
        "group": arguments.group,
        "lag": progress.lag,
        "consumeTps": progress.consume_tps,
        "queues": [
            {
                "topic": each.queue.topic, "broker": each.queue.broker_name, "queueId": each.queue.queue_id,
                "brokerOffset": each.broker_offset, "consumerOffset": each.consumer_offset, "lag": each.lag,
                "lagMs": each.lag_ms, "lastConsumed": each.last_consumed_ms, "clientId": each.client_id,
            }
            for each in progress.queues
        ],
    }  # fmt: skip
    return Shown(document, lines, troubles_of(progress.failures))


def _on(topic: str | None) -> str:
    return f" on {topic}" if topic else ""


def _sum(progress: GroupProgress) -> str:
    unknown = sum(each.lag is None for each in progress.queues)
    text = f"lag {progress.lag:,}" if progress.lag is not None else "lag unknown"
    if unknown and progress.lag is not None:
        text += f", and unknown in {unknown} queue(s) the group never wrote an offset for"
    return f"{text}; {progress.consume_tps:,.1f} messages a second"


async def plan_create(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    check_group(arguments.group)
    masters = await admin.masters(arguments.cluster)
    known = (await admin.groups(arguments.cluster)).get(arguments.group, {})
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
    )


async def create_group(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    check_group(arguments.group)
    done = await admin.create_group_everywhere(_config(arguments), arguments.cluster)
    return Shown({"group": arguments.group, "brokers": done}, [f"{arguments.group} set at {', '.join(done)}"])


async def plan_delete(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    known = (await admin.groups(arguments.cluster)).get(arguments.group)
    progress = await admin.progress(arguments.group)
    if known is None and not progress.queues:
        raise NotThere(f"there is no consumer group {arguments.group}")
    known = known or {}  # offsets may be all there is of it
    members = await admin.members(arguments.group)
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
    done = await admin.delete_group_everywhere(
        arguments.group, arguments.cluster, remove_offsets=not arguments.keep, remove_topics=not arguments.keep
    )
    return Shown({"group": arguments.group, "brokers": done}, [f"{arguments.group} deleted at {', '.join(done)}"])


# -- clients ----------------------------------------------------------------------------------------------------------


async def show_consumers(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """What every member of a group says of itself."""
    members = await admin.members(arguments.group)
    masters = await admin.masters()
    asked = {one.client_id: masters[name] for name, each in members.by_broker.items() for one in each.connection_set}
    wanted = [one for one in sorted(asked) if arguments.client is None or one == arguments.client]
    infos, failures = await ask_each(
        wanted,
        lambda client: admin.running_info(asked[client], arguments.group, client, with_stacks=arguments.stacks),
    )
    if arguments.client is not None and not wanted:
        raise NotThere(f"{arguments.client} is no member of {arguments.group}")
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
        lines += ["", *table(("at work on", "queue", "offset", "messages", "for"), busy)]
    if info.get("jstack"):
        lines += ["", *str(info["jstack"]).splitlines()]
    return lines


async def show_producers(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    masters = await admin.masters()
    found, failures = await ask_each(masters, lambda name: admin.producers(masters[name]))
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


def _group(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="RocketMQ's own groups too")
    add_cluster(parser)


def _lag_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("-t", "--topic", metavar="TOPIC", help="only this topic")
    parser.add_argument("--clients", action="store_true", help="ask the members which queues they hold")


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("--retries", type=positive, default=16, metavar="N", help="default: %(default)s")
    parser.add_argument("--retry-queues", type=positive, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--disabled", action="store_true", help="let nobody consume for it")
    parser.add_argument("--no-broadcast", action="store_true", help="let nobody broadcast")
    add_cluster(parser)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("--keep", action="store_true", help="keep offsets, retry and dead-letter topics")
    add_cluster(parser)


def _consumers_arguments(parser: argparse.ArgumentParser) -> None:
    _group(parser)
    parser.add_argument("client", nargs="?", metavar="CLIENT", help="only this member")
    parser.add_argument("--stacks", action="store_true", help="the stacks of its threads and listener calls too")


def _producers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", nargs="?", metavar="GROUP", help="only this producer group")


COMMANDS = {
    "groups": {
        "list": Command("every group with members and lag", list_groups, _list_arguments),
        "show": Command("settings, subscriptions and members of a group", show_group, _group),
        "lag": Command("how far a group is in each queue", show_lag, _lag_arguments),
        "create": Command("create a group, or replace its settings", create_group, _create_arguments, plan_create),
        "delete": Command("delete a group everywhere", delete_group, _delete_arguments, plan_delete, loses=True),
    },
    "consumers": {"": Command("what each member of a group is doing", show_consumers, _consumers_arguments)},
    "producers": {"": Command("who produces", show_producers, _producers_arguments)},
}
