"""`gantry admin topics | stats`."""

from __future__ import annotations

import argparse
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.options import add_cluster, positive
from appliance.cli.admin.output import ago
from appliance.cli.admin.stats import STATS
from appliance.cli.admin.topic_format import (
    PERMS,
    attributes_text,
    kind_of,
    parse_attribute,
    perm_text,
    without_effect_line,
)
from appliance.cli.tables import Cell, facts, table
from gantrymq.byte_size import readable
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.figures import TopicFigures
from gantrymq.client.admin.topics import changed_attributes
from gantrymq.errors import ConfigError, MessageRejected, ResponseError
from gantrymq.message.topics import check_topic
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import ResponseCode


async def list_topics(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Topics with their queues and permission, taken from each broker's own table: one request a broker."""
    info = await admin.cluster.info()
    masters = await admin.cluster.masters(arguments.cluster)
    system = {*info.cluster_addr_table, *info.broker_addr_table}
    system |= {f"{cluster}_REPLY_TOPIC" for cluster in info.cluster_addr_table}
    tables, failures = await ask_each(masters, lambda name: admin.topics.configs_at(masters[name]))
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
    offsets = await admin.topics.offsets(arguments.topic)
    configs = await admin.topics.plan_change(arguments.topic)
    consumers = await admin.topics.groups(arguments.topic)
    figures = await _figures(admin, arguments.topic)
    total = sum(at.max_offset - at.min_offset for at in offsets.values())
    last = max((at.last_update_timestamp for at in offsets.values()), default=0)
    lines = facts(
        [
            ("topic", arguments.topic),
            ("messages kept", total),
            *_figure_facts(figures),
            ("last message", ago(last) or "never"),
            ("consumer groups", ", ".join(consumers) or "none"),
        ]
    )
    settings = [
        (name, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm), config.order,
         attributes_text(config))
        for name, (config, _) in configs.items()
    ]  # fmt: skip
    lines += ["", *table(("broker", "write queues", "read queues", "perm", "ordered", "attributes"), settings)]
    lines += without_effect_line([config for config, _ in configs.values()])
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
        "figures": figures,
    }
    return Shown(document, lines)


async def _figures(admin: AdminClient, topic: str) -> dict[str, TopicFigures] | None:
    """By broker; None where a broker has no request for it, as Apache's have not."""
    masters = await admin.topics.masters(topic)
    found, failures = await ask_each(masters, lambda name: admin.topics.figures_at(masters[name], topic))
    for failure in failures.values():
        if not isinstance(failure, ResponseError) or failure.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise failure
    return None if failures else found


def _figure_facts(figures: dict[str, TopicFigures] | None) -> list[tuple[str, str]]:
    """What its messages take in the logs, and who sent the newest of them."""
    if figures is None:
        return []
    sizes = [one.size_bytes for one in figures.values()]
    about = "" if all(one.is_exact for one in figures.values()) else "about "
    size = "not counted yet" if None in sizes else f"{about}{readable(sum(filter(None, sizes)))}"
    names = {one.client_id or one.address: ", ".join(one.groups) for each in figures.values() for one in each.producers}
    told = [f"{name} ({groups})" if groups else name for name, groups in sorted(names.items())]
    return [
        ("size in the logs", size),
        ("producers", "; ".join(told) or "none connected that sent the newest messages"),
    ]


async def route_of(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    route = await admin.topics.route(arguments.topic)
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
    try:
        check_topic(arguments.topic)
    except MessageRejected as exc:
        raise ConfigError(f"topic {arguments.topic!r}: {exc}; a good name is orders-paid") from exc
    masters = await admin.cluster.masters(arguments.cluster)
    existing = []
    for name, address in masters.items():
        if await admin.topics.config_at(address, arguments.topic) is not None:
            existing.append(name)
    if existing:
        raise ConfigError(f"{arguments.topic} exists already at {', '.join(existing)}: `topics set` changes it")
    config = _config(arguments)
    rows = [(name, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm), attributes_text(config))
            for name in masters]  # fmt: skip
    lines = table(("create at", "write queues", "read queues", "perm", "attributes"), rows, empty="there is no broker")
    return Shown({"topic": config, "brokers": list(masters)}, lines)


def _config(arguments: argparse.Namespace) -> TopicConfig:
    attributes = changed_attributes(None, dict(arguments.attribute or ()))
    return TopicConfig(
        arguments.topic,
        arguments.queues,
        arguments.queues,
        PERMS[arguments.perm],
        order=arguments.ordered,
        attributes=attributes,
    )


async def create_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    await plan_create(admin, arguments)  # which refuses to replace a topic
    config = _config(arguments)
    done = await admin.topics.create(config, arguments.cluster)
    lines = [f"{arguments.topic} created at {', '.join(done)}", *without_effect_line([config])]
    troubles = await _without_attributes(admin, dict.fromkeys(done, config))
    return Shown({"topic": arguments.topic, "brokers": done}, lines, troubles)


async def plan_set(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    return _changes(await admin.topics.plan_change(arguments.topic, **_wanted(arguments)))


async def set_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    plan = await admin.topics.change(arguments.topic, **_wanted(arguments))
    shown = _changes(plan)
    shown.troubles = await _without_attributes(admin, {name: after for name, (_, after) in plan.items()})
    return shown


def _wanted(arguments: argparse.Namespace) -> dict[str, Any]:
    wanted = {
        "perm": None if arguments.perm is None else PERMS[arguments.perm],
        "read_queues": arguments.read_queues or arguments.queues,
        "write_queues": arguments.write_queues or arguments.queues,
        "attributes": dict(arguments.attribute) if arguments.attribute else None,
    }
    if all(value is None for value in wanted.values()):
        raise ConfigError("say what to change: --queues, --read-queues, --write-queues, --perm or --attribute")
    return wanted


async def _without_attributes(admin: AdminClient, wanted: dict[str, TopicConfig]) -> list[str]:
    """A sentence for each broker that did not keep a topic's attributes: RocketMQ 4.9 passes over them silently."""
    if not any(config.attributes for config in wanted.values()):
        return []
    masters = await admin.cluster.masters()
    troubles = []
    for name, config in wanted.items():
        kept = await admin.topics.config_at(masters[name], config.topic_name)
        if kept is None or kept.attributes != config.attributes:
            troubles.append(f"broker {name} does not keep attributes of topics (RocketMQ 4.9 has none)")
    return troubles


def _changes(plan: dict[str, tuple[TopicConfig, TopicConfig]]) -> Shown:
    def cells(name: str, which: str, config: TopicConfig) -> tuple[Cell, ...]:
        return (name, which, config.write_queue_nums, config.read_queue_nums, perm_text(config.perm),
                attributes_text(config))  # fmt: skip

    rows = [
        cells(name, which, config)
        for name, both in plan.items()
        for which, config in zip(("before", "after"), both, strict=True)
    ]
    document = {name: {"before": before, "after": after} for name, (before, after) in plan.items()}
    return Shown(document, table(("broker", "", "write queues", "read queues", "perm", "attributes"), rows))


async def plan_delete(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    offsets = await admin.topics.offsets(arguments.topic)
    consumers = await admin.topics.groups(arguments.topic)
    brokers = sorted(await admin.topics.masters(arguments.topic))
    kept = sum(at.max_offset - at.min_offset for at in offsets.values())
    lines = [f"delete {arguments.topic} with {kept:,} messages at {', '.join(brokers)}"]
    if consumers:
        lines.append(f"consumer groups that have offsets on it: {', '.join(consumers)}")
    document = {"topic": arguments.topic, "messages": kept, "brokers": brokers, "consumerGroups": consumers}
    return Shown(document, lines)


async def delete_topic(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    done = await admin.topics.delete(arguments.topic, arguments.cluster)
    return Shown({"topic": arguments.topic, "brokers": done}, [f"{arguments.topic} deleted at {', '.join(done)}"])


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
    _attribute(parser)
    add_cluster(parser)


def _attribute(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attribute", action="append", type=parse_attribute, metavar="NAME=VALUE",
        help="repeatable: retention.ms (age at which messages expire), retention.messages (how many to keep of each "
        "queue); -NAME removes one",
    )  # fmt: skip


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    parser.add_argument("-q", "--queues", type=positive, metavar="N", help="read and write queues per broker")
    parser.add_argument("--read-queues", type=positive, metavar="N")
    parser.add_argument("--write-queues", type=positive, metavar="N")
    parser.add_argument("--perm", choices=PERMS)
    _attribute(parser)


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    _topic(parser)
    add_cluster(parser)


COMMANDS = {
    "topics": {
        "list": Command("every topic with its queues", list_topics, _list_arguments),
        "show": Command("settings, queues and groups of a topic", show_topic, _topic),
        "create": Command("create a topic at every broker", create_topic, _create_arguments, plan_create),
        "set": Command(
            "change a topic at every broker that has it", set_topic, _set_arguments, plan_set, aliases=("update",)
        ),
        "delete": Command(
            "delete a topic everywhere", delete_topic, _delete_arguments, plan_delete, loses=True, aliases=("remove",)
        ),
        "route": Command("which brokers hold a topic", route_of, _topic),
        "stats": STATS,
    },
    "stats": {"": STATS},
}
