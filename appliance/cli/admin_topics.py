"""`gantry admin topics | stats`."""

from __future__ import annotations

import argparse

from appliance.cli.admin_command import Command, Shown, add_cluster, positive
from appliance.cli.admin_output import Cell, ago, facts, table
from gantrymq.client.admin import AdminClient
from gantrymq.client.admin_calls import ask_each
from gantrymq.client.admin_results import TopicTraffic
from gantrymq.errors import ConfigError, RouteNotFound
from gantrymq.message.topics import check_topic, is_dlq_topic, is_retry_topic, is_system_topic
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE, TopicConfig

PERMS = {"rw": PERM_READ | PERM_WRITE, "r": PERM_READ, "w": PERM_WRITE, "none": 0}
KINDS = ("normal", "retry", "dead letters", "system")


def perm_text(perm: int) -> str:
    """RocketMQ's bits as letters."""
    return ("r" if perm & PERM_READ else "-") + ("w" if perm & PERM_WRITE else "-")


def kind_of(topic: str, system: set[str]) -> str:
    if is_dlq_topic(topic):
        return "dead letters"
    if is_retry_topic(topic):
        return "retry"
    return "system" if is_system_topic(topic) or topic in system else "normal"


async def list_topics(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Topics with their queues and permission, taken from each broker's own table: one request a broker."""
    info = await admin.cluster_info()
    masters = await admin.masters(arguments.cluster)
    system = {*info.cluster_addr_table, *info.broker_addr_table}
    system |= {f"{cluster}_REPLY_TOPIC" for cluster in info.cluster_addr_table}
    tables, failures = await ask_each(masters, lambda name: admin.topic_configs(masters[name]))
    if failures and not tables:
        raise next(iter(failures.values()))
    found: dict[str, dict[str, TopicConfig]] = {}
    for name, wrapper in tables.items():
        for topic, config in wrapper.topic_config_table.items():
            found.setdefault(topic, {})[name] = config
    rows: list[list[Cell]] = []
    documents = []
    for topic, configs in sorted(found.items()):
        kind = kind_of(topic, system)
        if kind != "normal" and not arguments.all:
            continue
        queues = sum(config.write_queue_nums for config in configs.values())
        perms = sorted({perm_text(config.perm) for config in configs.values()})
        rows.append([topic, kind, queues, " ".join(perms), ", ".join(sorted(configs))])
        documents.append({"topic": topic, "kind": kind, "brokers": configs})
    lines = table(
        ("topic", "kind", "queues", "perm", "brokers"), rows, empty="no topics; --all shows system topics too"
    )
    return Shown(documents, lines, [f"broker {name}: {failure}" for name, failure in failures.items()])


async def show_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    offsets = await admin.topic_offsets(arguments.topic)
    configs = await admin.plan_topic_change(arguments.topic)
    consumers = await admin.topic_consumers(arguments.topic)
    total = sum(at.max_offset - at.min_offset for at in offsets.values())
    last = max((at.last_update_timestamp for at in offsets.values()), default=0)
    lines = facts(
        [
            ("topic", arguments.topic),
            ("messages kept", total),
            ("last message", ago(last) or "never"),
            ("consumer groups", ", ".join(consumers) or "none"),
        ]
    )
    settings = [
        (name, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm), config.order)
        for name, (config, _) in configs.items()
    ]
    lines += ["", *table(("broker", "write queues", "read queues", "perm", "ordered"), settings)]
    rows = [
        (queue.broker_name, queue.queue_id, at.min_offset, at.max_offset, at.max_offset - at.min_offset,
         ago(at.last_update_timestamp))
        for queue, at in offsets.items()
    ]  # fmt: skip
    lines += ["", *table(("broker", "queue", "min", "max", "messages", "last message"), rows, empty="no queues")]
    document = {
        "topic": arguments.topic,
        "consumerGroups": consumers,
        "brokers": {name: config for name, (config, _) in configs.items()},
        "queues": [{"queue": queue, **at.to_dict()} for queue, at in offsets.items()],
    }
    return Shown(document, lines)


async def route_of(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    route = await admin.topic_route(arguments.topic)
    addresses = {broker.broker_name: broker.broker_addrs for broker in route.broker_datas}
    rows = [
        (data.broker_name, data.write_queue_nums, data.read_queue_nums, perm_text(data.perm),
         ", ".join(f"{number}={address}" for number, address in sorted(addresses.get(data.broker_name, {}).items())))
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
    ]  # fmt: skip
    lines = table(("broker", "write queues", "read queues", "perm", "addresses"), rows)
    if route.order_topic_conf:
        lines.append(f"fixed order of queues: {route.order_topic_conf}")
    return Shown(route, lines)


async def plan_create(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    check_topic(arguments.topic)
    masters = await admin.masters(arguments.cluster)
    existing = []
    for name, address in masters.items():
        if await admin.topic_config(address, arguments.topic) is not None:
            existing.append(name)
    if existing:
        raise ConfigError(f"{arguments.topic} exists already at {', '.join(existing)}: `topics set` changes it")
    config = _config(arguments)
    rows = [(name, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm)) for name in masters]
    lines = table(("create at", "write queues", "read queues", "perm"), rows, empty="there is no broker")
    return Shown({"topic": config, "brokers": list(masters)}, lines)


def _config(arguments: argparse.Namespace) -> TopicConfig:
    return TopicConfig(
        arguments.topic, arguments.queues, arguments.queues, PERMS[arguments.perm], order=arguments.ordered
    )


async def create_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    await plan_create(admin, arguments)  # which refuses to replace a topic
    done = await admin.create_topic_everywhere(_config(arguments), arguments.cluster)
    return Shown({"topic": arguments.topic, "brokers": done}, [f"{arguments.topic} created at {', '.join(done)}"])


async def plan_set(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    return _changes(await admin.plan_topic_change(arguments.topic, **_wanted(arguments)))


async def set_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    return _changes(await admin.change_topic_everywhere(arguments.topic, **_wanted(arguments)))


def _wanted(arguments: argparse.Namespace) -> dict[str, int | None]:
    wanted = {
        "perm": None if arguments.perm is None else PERMS[arguments.perm],
        "read_queues": arguments.read_queues or arguments.queues,
        "write_queues": arguments.write_queues or arguments.queues,
    }
    if all(value is None for value in wanted.values()):
        raise ConfigError("say what to change: --queues, --read-queues, --write-queues or --perm")
    return wanted


def _changes(plan: dict[str, tuple[TopicConfig, TopicConfig]]) -> Shown:
    def cells(name: str, which: str, config: TopicConfig) -> tuple[Cell, ...]:
        return name, which, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm)

    rows = [
        cells(name, which, config)
        for name, both in plan.items()
        for which, config in zip(("before", "after"), both, strict=True)
    ]
    document = {name: {"before": before, "after": after} for name, (before, after) in plan.items()}
    return Shown(document, table(("broker", "", "write queues", "read queues", "perm"), rows))


async def plan_delete(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    offsets = await admin.topic_offsets(arguments.topic)
    consumers = await admin.topic_consumers(arguments.topic)
    brokers = sorted(await admin.topic_masters(arguments.topic))
    kept = sum(at.max_offset - at.min_offset for at in offsets.values())
    lines = [f"delete {arguments.topic} with {kept:,} messages at {', '.join(brokers)}"]
    if consumers:
        lines.append(f"consumer groups that have offsets on it: {', '.join(consumers)}")
    document = {"topic": arguments.topic, "messages": kept, "brokers": brokers, "consumerGroups": consumers}
    return Shown(document, lines)


async def delete_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    done = await admin.delete_topic_everywhere(arguments.topic, arguments.cluster)
    return Shown({"topic": arguments.topic, "brokers": done}, [f"{arguments.topic} deleted at {', '.join(done)}"])


async def show_stats(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Traffic of one topic, or of all that have any."""
    topics = [arguments.topic] if arguments.topic else await _topics_worth_a_look(admin, arguments.all)
    found, failures = await ask_each(topics, admin.traffic)
    if arguments.topic and failures:
        raise next(iter(failures.values()))
    rows = [
        row for topic in topics for row in found.get(topic, []) if arguments.topic or arguments.all or _is_busy(row)
    ]
    await _add_lag(admin, rows)
    cells = [(row.topic, row.group, row.in_tps, row.out_tps, row.in_today, row.out_today, row.lag) for row in rows]
    columns = ("topic", "group", "in/s", "out/s", "in 24 h", "out 24 h", "lag")
    lines = table(columns, cells, empty="no traffic; --all shows silent topics too")
    troubles = [f"{topic}: {failure}" for topic, failure in failures.items() if not isinstance(failure, RouteNotFound)]
    return Shown(rows, lines, troubles)


async def _topics_worth_a_look(admin: AdminClient, with_all: bool) -> list[str]:
    topics = sorted(await admin.topic_list())
    return topics if with_all else [topic for topic in topics if kind_of(topic, set()) != "system"]


def _is_busy(row: TopicTraffic) -> bool:
    return bool(row.in_today or row.out_today or row.in_tps or row.out_tps)


async def _add_lag(admin: AdminClient, rows: list[TopicTraffic]) -> None:
    with_group = [(row.topic, row.group) for row in rows if row.group is not None]
    found, _ = await ask_each(with_group, lambda pair: admin.progress(pair[1], pair[0]))
    for row in rows:
        if row.group is not None and (row.topic, row.group) in found:
            row.lag = found[row.topic, row.group].lag


def _topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="system, retry and dead-letter topics too")
    add_cluster(parser)


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument(
        "-q", "--queues", type=positive, default=8, metavar="N", help="per broker (default: %(default)s)"
    )
    parser.add_argument("--perm", choices=PERMS, default="rw", help="default: %(default)s")
    parser.add_argument("--ordered", action="store_true", help="keep the layout of queues when a broker is away")
    add_cluster(parser)


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("-q", "--queues", type=positive, metavar="N", help="read and write queues per broker")
    parser.add_argument("--read-queues", type=positive, metavar="N")
    parser.add_argument("--write-queues", type=positive, metavar="N")
    parser.add_argument("--perm", choices=PERMS)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    add_cluster(parser)


def _stats_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="default: every topic with traffic")
    parser.add_argument("-a", "--all", action="store_true", help="silent topics too")


COMMANDS = {
    "topics": {
        "list": Command("every topic with its queues", list_topics, _list_arguments),
        "show": Command("settings, queues and groups of a topic", show_topic, _topic),
        "create": Command("create a topic at every broker", create_topic, _create_arguments, plan_create),
        "set": Command("change a topic at every broker that has it", set_topic, _set_arguments, plan_set),
        "delete": Command("delete a topic everywhere", delete_topic, _delete_arguments, plan_delete, loses=True),
        "route": Command("which brokers hold a topic", route_of, _topic),
        "stats": Command("traffic of a topic", show_stats, _stats_arguments),
    },
    "stats": {"": Command("traffic of topics and groups", show_stats, _stats_arguments)},
}
