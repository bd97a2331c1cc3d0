"""`gantry admin kv | perm | clean`."""

from __future__ import annotations

import argparse

from appliance.cli.admin.cluster import choose_brokers
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.cli.tables import table
from gantrymq.client.admin.client import AdminClient

CLEANINGS = {
    "queues": "consume queue files that point before the commit log",
    "topics": "queues of topics that no longer exist",
    "log": "expired commit log files",
}


async def list_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    entries = await admin.name_servers.list_kv(arguments.namespace)
    return Shown(entries, table(("key", "value"), sorted(entries.items()), empty="no entries"))


async def get_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    value = await admin.name_servers.get_kv(arguments.namespace, arguments.key)
    if value is None:
        raise NotThere(f"there is no {arguments.key} in {arguments.namespace}")
    return Shown(value, [value])


async def plan_set_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    before = await admin.name_servers.get_kv(arguments.namespace, arguments.key)
    after = getattr(arguments, "value", None)
    row = (arguments.namespace, arguments.key, before, after)
    document = {"namespace": row[0], "key": row[1], "before": before, "after": after}
    return Shown(document, table(("namespace", "key", "before", "after"), [row]))


async def set_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    plan = await plan_set_kv(admin, arguments)
    await admin.name_servers.put_kv(arguments.namespace, arguments.key, arguments.value)
    return plan


async def plan_delete_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    if await admin.name_servers.get_kv(arguments.namespace, arguments.key) is None:
        raise NotThere(f"there is no {arguments.key} in {arguments.namespace}")
    return await plan_set_kv(admin, arguments)


async def delete_kv(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    plan = await plan_delete_kv(admin, arguments)
    await admin.name_servers.delete_kv(arguments.namespace, arguments.key)
    return plan


async def plan_perm(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    (broker,) = await choose_brokers(admin, [arguments.broker])
    topics = (await admin.topics.configs_at(broker.address)).topic_config_table
    text = f"{broker.name}: {len(topics)} topics at {len(admin.name_servers.addresses)} name server(s) would change"
    return Shown({"broker": broker.name, "topics": len(topics)}, [text])


async def wipe_perm(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    (broker,) = await choose_brokers(admin, [arguments.broker])
    counts = await admin.name_servers.wipe_write_perm(broker.name)
    lines = table(("name server", "topics without write permission"), counts.items())
    return Shown(counts, [*lines, f"producers leave {broker.name} within 30 s; `gantry admin perm restore` undoes it"])


async def restore_perm(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    (broker,) = await choose_brokers(admin, [arguments.broker])
    counts = await admin.name_servers.add_write_perm(broker.name)
    return Shown(counts, table(("name server", "topics with write permission"), counts.items()))


async def plan_clean(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    brokers = await choose_brokers(admin, arguments.broker)
    names = [each.name for each in brokers]
    return Shown(
        {"what": arguments.what, "brokers": names}, [f"drop {CLEANINGS[arguments.what]} at {', '.join(names)}"]
    )


async def clean(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    calls = {
        "queues": admin.brokers.clean_expired_queues,
        "topics": admin.brokers.clean_unused_topics,
        "log": admin.brokers.delete_expired_commit_log,
    }
    brokers = await choose_brokers(admin, arguments.broker)
    for broker in brokers:
        await calls[arguments.what](broker.address)
    names = [each.name for each in brokers]
    return Shown(
        {"what": arguments.what, "brokers": names}, [f"asked {', '.join(names)}; they do it in the background"]
    )


def _namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("namespace", metavar="NAMESPACE", help="such as ORDER_TOPIC_CONFIG")


def _key(parser: argparse.ArgumentParser) -> None:
    _namespace(parser)
    parser.add_argument("key", metavar="KEY")


def _key_value(parser: argparse.ArgumentParser) -> None:
    _key(parser)
    parser.add_argument("value", metavar="VALUE")


def _broker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name or address")


def _clean_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", choices=CLEANINGS, help="; ".join(f"{name}: {text}" for name, text in CLEANINGS.items())
    )
    parser.add_argument("-b", "--broker", action="append", metavar="NAME", help="only this broker; repeatable")


COMMANDS = {
    "kv": {
        "list": Command("every entry of a namespace", list_kv, _namespace),
        "get": Command("one entry", get_kv, _key),
        "set": Command("set an entry at every name server", set_kv, _key_value, plan_set_kv),
        "delete": Command(
            "remove an entry from every name server", delete_kv, _key, plan_delete_kv, loses=True, aliases=("remove",)
        ),
    },
    "perm": {
        "wipe": Command("stop writes to a broker before its restart", wipe_perm, _broker, plan_perm),
        "restore": Command("undo wipe", restore_perm, _broker, plan_perm),
    },
    "clean": {
        "": Command("remove now what a broker would remove later", clean, _clean_arguments, plan_clean, loses=True)
    },
}
