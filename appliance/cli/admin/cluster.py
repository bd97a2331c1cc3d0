"""`gantry admin cluster | brokers | config`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere, troubles_of
from appliance.cli.admin.options import add_cluster, parse_pair
from appliance.cli.admin.output import ago
from appliance.cli.parser import did_you_mean
from appliance.cli.tables import Cell, facts, table
from gantrymq.byte_size import readable
from gantrymq.client.admin.brokers import SettingOrigins
from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.members import Member
from gantrymq.errors import PartlyDone
from gantrymq.remoting.admin_bodies import SlaveDifference, SlaveDifferences

# a broker's facts that people ask for first, under RocketMQ's names
FIRST_FACTS = (
    "brokerVersionDesc", "runtime", "msgPutTotalTodayNow", "msgGetTotalTodayNow", "putTps", "getTransferedTps",
    "messagesDamaged", "messagesDamagedLast",
    "commitLogDiskRatio", "commitLogDirCapacity", "earliestMessageTimeStamp", "dispatchBehindBytes",
    "remainHowManyDataToFlush", "sendThreadPoolQueueSize", "sendThreadPoolQueueCapacity",
    "sendThreadPoolQueueHeadWaitTimeMills", "pullThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills",
)  # fmt: skip


@dataclass
class BrokerAddress:
    """A broker as the name server lists it."""

    cluster: str
    name: str
    broker_id: int
    address: str


async def brokers_of(admin: AdminClient, cluster: str | None = None) -> list[BrokerAddress]:
    """Masters and slaves. ConfigError when there is no such cluster."""
    info = await admin.cluster.info()
    if cluster is not None and cluster not in info.cluster_addr_table:
        raise NotThere(f"there is no cluster {cluster}; known: {', '.join(sorted(info.cluster_addr_table)) or 'none'}")
    return sorted(
        (
            BrokerAddress(data.cluster, name, broker_id, address)
            for name, data in info.broker_addr_table.items()
            for broker_id, address in data.broker_addrs.items()
            if cluster is None or name in info.cluster_addr_table[cluster]
        ),
        key=lambda each: (each.cluster, each.name, each.broker_id),
    )


async def choose_brokers(admin: AdminClient, names: list[str] | None) -> list[BrokerAddress]:
    """The masters with these names or addresses; all when none is named. ConfigError when one is not there."""
    masters = [each for each in await brokers_of(admin) if each.broker_id == 0]
    if not names:
        return masters
    found = [each for each in masters if each.name in names or each.address in names]
    missing = set(names) - {each.name for each in found} - {each.address for each in found}
    if missing:
        known = ", ".join(each.name for each in masters) or "none"
        raise NotThere(f"there is no broker {', '.join(sorted(missing))}; known: {known}")
    return found


# -- cluster ----------------------------------------------------------------------------------------------------------


async def show_cluster(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    brokers = await brokers_of(admin, arguments.cluster)
    by_address = {each.address: each for each in brokers}
    infos, failures = await ask_each(by_address, admin.brokers.runtime_info)
    rows: list[list[Cell]] = []
    names = {
        info["slaveConnection"]: f"{by_address[address].name}:{by_address[address].broker_id}"
        for address, info in infos.items()
        if "slaveConnection" in info
    }
    for each in brokers:
        info = infos.get(each.address)
        start: list[Cell] = [each.cluster, each.name, each.broker_id, each.address]
        if info is None:
            rows.append([*start, "no metrics", None, None, None, None, None, None, None])
            continue
        rows.append(
            [
                *start,
                info.get("brokerVersionDesc", ""),
                _rate(info.get("putTps")),
                _rate(info.get("getTransferedTps")),
                _number(info.get("msgPutTotalTodayNow"), minus=info.get("msgPutTotalTodayMorning")),
                _number(info.get("msgGetTotalTodayNow"), minus=info.get("msgGetTotalTodayMorning")),
                _percent(info.get("commitLogDiskRatio")),
                ago(_number(info.get("earliestMessageTimeStamp"))),
                _replication(info, names),
            ]
        )
    columns = (
        "cluster", "broker", "id", "address", "version", "in/s", "out/s", "in today", "out today", "disk", "oldest",
        "slaves",
    )  # fmt: skip
    lines = table(columns, rows, empty="no broker is registered at the name server")
    lines += [line for address, info in infos.items() for line in _damage(by_address[address].name, info)]
    document = [
        {**vars(each), "runtime": infos.get(each.address), "isAnswering": each.address in infos} for each in brokers
    ]
    troubles = troubles_of({by_address[address].name: failure for address, failure in failures.items()})
    return Shown(document, lines, troubles)


def _rate(text: str | None) -> float | None:
    """The first of "10 s, 60 s, 600 s" averages."""
    try:
        return float((text or "").split()[0])
    except (IndexError, ValueError):
        return None


def _number(text: str | None, *, minus: str | None = None) -> int | None:
    try:
        return int(text or "") - int(minus or 0)
    except ValueError:
        return None


def _replication(info: Mapping[str, str], names: Mapping[str, str]) -> str | None:
    """Of a master its slaves: how many are in sync, and of each how far it is behind. Of a slave what it does.

    names: of slaves, by the connection that their master knows them by.
    """
    if (rival := info.get("epochRival", "none")) != "none":
        number, rival_id, address = rival.split()
        own = info.get("epochId", "none")
        return f"epoch {number} was begun twice, here as {own} and as {rival_id} at {address}: no messages are taken"
    if "slaveState" in info:
        return _following(Member("", None, info))
    slaves = SlaveDifferences.of_runtime_info(info)
    handed = info.get("epochHandedTo", "none").split()
    gone = info.get("slavesGone", "none")
    parts = []
    if len(handed) == 2:
        parts.append(f"gave up its role to {handed[1]} for epoch {handed[0]}: it waits for its answer")
    if (fenced := info.get("masterFencedBy", "none")) != "none":
        parts.append(f"fenced by {fenced}: it takes no messages")
    if len(slaves) == 1:
        parts.append(f"{slaves[0].in_sync:d} of 1 in sync, {_difference(slaves[0])}")
    elif slaves:
        parts.append(f"{sum(slave.in_sync for slave in slaves)} of {len(slaves)} in sync")
        for slave in sorted(slaves, key=lambda slave: -slave.behind_bytes):
            name = names.get(slave.address, slave.address)
            parts.append(f"{name} {'' if slave.in_sync else 'not '}in sync, {_difference(slave)}")
    if (in_sync := info.get("slavesInSyncSet", "none")) != "none":
        parts.append(f"{in_sync} {'have' if ',' in in_sync else 'has'} every confirmed message")
    if gone != "none":
        parts.append(f"gone: {', '.join(each.split()[0] for each in gone.split(','))}")
    return "; ".join(parts) or ("none" if "slaveDifferences" in info else None)


def _following(slave: Member) -> str:
    begin, end = slave.apache_log
    if end < 0:
        return slave.state
    missing = max(end - slave.end, 0) + max(slave.begin - begin, 0)
    return f"{f'lacks {readable(missing)}' if missing else 'has all'} of its fenced master's log, {slave.state}"


def _difference(slave: SlaveDifference) -> str:
    messages = f"{slave.behind_messages:,} messages, " if slave.behind_messages >= 0 else ""
    behind = f"{readable(slave.behind_bytes)}, {messages}{slave.behind_seconds:.0f} s behind"
    return f"{behind}, {readable(slave.bytes_per_second)}/s"


def _damage(name: str, info: Mapping[str, str]) -> list[str]:
    if info.get("messagesDamaged", "0") == "0":
        return []
    found = f"{info['messagesDamaged']} found since its start, the last at {info.get('messagesDamagedLast')}"
    return [f"{name} has damaged messages on its disk: {found}; `gantry store verify` lists all damage"]


def _percent(text: str | None) -> str | None:
    try:
        return f"{float(text or ''):.0%}"
    except ValueError:
        return None


# -- brokers ----------------------------------------------------------------------------------------------------------


async def list_brokers(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    brokers = await brokers_of(admin, arguments.cluster)
    rows = [(each.cluster, each.name, "master" if each.broker_id == 0 else "slave", each.address) for each in brokers]
    return Shown([vars(each) for each in brokers], table(("cluster", "broker", "role", "address"), rows))


async def show_broker(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    (broker,) = await choose_brokers(admin, [arguments.broker])
    info = await admin.brokers.runtime_info(broker.address)
    first = [name for name in FIRST_FACTS if name in info]
    shown = sorted(info) if arguments.all else first
    lines = facts([("broker", broker.name), ("address", broker.address), *((name, info[name]) for name in shown)])
    if not arguments.all:
        lines.append(f"{len(info) - len(first)} more with --all")
    return Shown({**vars(broker), "runtime": info}, lines)


# -- config -----------------------------------------------------------------------------------------------------------


async def get_config(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Settings with where each comes from, which GantryMQ's brokers tell."""
    settings, origins = await _settings_with_origins(admin, arguments)
    wanted = {
        name: {key: value for key, value in sorted(values.items()) if _is_wanted(key, arguments.key)}
        for name, values in settings.items()
    }
    rows = [
        (name, key, value, _source(key, origins.get(name)))
        for name, values in wanted.items()
        for key, value in values.items()
    ]
    document: Any = wanted
    if arguments.sources:
        document = {name: {} for name in wanted}
        for name, key, value, source in rows:
            document[name][key] = {"value": value, "source": source}
    heads = ("at", "setting", "value", "from")
    return Shown(document, table(heads, rows, empty="no such setting"), is_failure=not rows)


async def _settings_with_origins(
    admin: AdminClient, arguments: argparse.Namespace
) -> tuple[dict[str, dict[str, str]], dict[str, SettingOrigins | None]]:
    """Settings as `_settings` has them, and what each broker tells of where they come from."""
    if arguments.namesrv_settings:
        return await _settings(admin, arguments), {}
    brokers = await choose_brokers(admin, arguments.broker)
    told = {broker.name: await admin.brokers.config_with_origins(broker.address) for broker in brokers}
    return {name: values for name, (values, _) in told.items()}, {name: origins for name, (_, origins) in told.items()}


def _source(key: str, origins: SettingOrigins | None) -> str:
    """In words; "" where the server does not tell, as RocketMQ's do not."""
    if origins is None:
        return ""
    if key in origins.changed:
        at = datetime.fromtimestamp(origins.changed[key] / 1000, UTC)
        return f"changed while it runs, {at:%Y-%m-%d %H:%M:%S} UTC"
    return "file" if key in origins.in_file else "default, or follows from others"


def _is_wanted(key: str, patterns: list[str]) -> bool:
    return not patterns or any(pattern.lower() in key.lower() for pattern in patterns)


async def plan_config(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """What the settings are, and would be. NotThere when a server has no such setting: it would pass over it."""
    changes = dict(arguments.setting)
    current = await _settings(admin, arguments)
    for name, values in current.items():
        for key in changes:
            if key not in values:
                guess = did_you_mean(key, list(values))
                raise NotThere(f"{name} has no setting {key}{guess}; `gantry admin config get` lists what it has")
    rows = [
        (name, key, values.get(key), value)
        for name, values in current.items()
        for key, value in sorted(changes.items())
    ]
    document = [{"at": name, "setting": key, "before": old, "after": new} for name, key, old, new in rows]
    return Shown(document, table(("at", "setting", "before", "after"), rows))


async def _settings(admin: AdminClient, arguments: argparse.Namespace) -> dict[str, dict[str, str]]:
    """Settings by broker name, or by address of a name server."""
    if arguments.namesrv_settings:
        return {address: await admin.name_servers.config(address) for address in admin.name_servers.addresses}
    brokers = await choose_brokers(admin, arguments.broker)
    return {broker.name: await admin.brokers.config(broker.address) for broker in brokers}


async def set_config(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    plan = await plan_config(admin, arguments)
    changes = dict(arguments.setting)
    if arguments.namesrv_settings:
        servers = {address: address for address in admin.name_servers.addresses}
    else:
        servers = {broker.name: broker.address for broker in await choose_brokers(admin, arguments.broker)}

    async def change(name: str) -> str | None:
        if arguments.namesrv_settings:
            await admin.name_servers.update_config(servers[name], changes)
            return None
        return await admin.brokers.update_config(servers[name], changes)

    remarks, failures = await ask_each(servers, change)
    if failures:
        raise PartlyDone(list(remarks), failures)
    plan.lines = [*plan.lines, *(f"{name}: {remark}" for name, remark in remarks.items() if remark)]
    return plan


def _config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-b", "--broker", action="append", metavar="NAME", help="only this broker; repeatable")
    parser.add_argument("--of-namesrv", dest="namesrv_settings", action="store_true", help="of the name servers")


def _get_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="*", metavar="SETTING", help="names, or parts of names; default: all")
    parser.add_argument("--sources", action="store_true", help="with --json: where each value comes from, too")
    _config_arguments(parser)


def _setting(text: str) -> tuple[str, str]:
    return parse_pair(text, example="fileReservedTime=48")


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("setting", nargs="+", type=_setting, metavar="SETTING=VALUE", help="repeatable")
    _config_arguments(parser)


def _broker_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name or address")
    parser.add_argument("--all", action="store_true", help="every figure")


COMMANDS = {
    "cluster": {"": Command("brokers, their version, rates and disks", show_cluster, add_cluster)},
    "brokers": {
        "list": Command("name, role and address of every broker", list_brokers, add_cluster),
        "show": Command("all figures of a broker", show_broker, _broker_arguments),
    },
    "config": {
        "get": Command("effective settings of brokers", get_config, _get_arguments),
        "set": Command(
            "change settings of running brokers and save them there", set_config, _set_arguments, plan_config
        ),
    },
}
