"""The verbs. They read and change the record in etcd themselves, and ask the brokers for the rest."""

from __future__ import annotations

import argparse
from typing import Any

from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.ha import failover
from appliance.cli.admin.ha.explain import explain, why_not
from appliance.cli.admin.ha.looking import Seen, broker_arguments, look, look_at_record
from appliance.cli.admin.output import ago
from appliance.cli.tables import Cell, table
from appliance.register.register import HA_INIT
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.members import Member
from gantrymq.errors import ConfigError, GantryError


def _master(seen: Seen, arguments: argparse.Namespace) -> Member:
    """The master whose log counts from now on. ConfigError when that is not clear, or a member has a later epoch."""
    masters = [member for member in seen.members if member.is_master]
    if arguments.master:
        masters = [member for member in masters if member.address == arguments.master]
    if len(masters) != 1:
        found = ", ".join(member.address for member in masters) or "none"
        raise ConfigError(f"masters of {arguments.broker} that answer: {found}. Name the one that counts with --master")
    (master,) = masters
    later = [member for member in seen.members if member.log_epoch > master.log_epoch]
    if not master.log_epoch or later:
        than = ", ".join(f"{member.address} is of epoch {member.log_epoch}" for member in later) or "it knows no epoch"
        raise ConfigError(f"{master.address} is of epoch {master.log_epoch}: {than}")
    silent = [member.address for member in seen.members if not member.answers]
    if silent and not arguments.accept_unknown:
        raise ConfigError(
            f"{', '.join(silent)} does not answer, and may know of a later epoch: start it first, or --accept-unknown"
        )
    return master


async def plan_init(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen = await look(admin, arguments)
    if seen.view.term is not None:
        raise ConfigError(f"etcd has epoch {seen.view.term.epoch} of {seen.view.term.owner} on record already")
    master = _master(seen, arguments)
    document = {"broker": arguments.broker, "master": master.address, "epoch": master.log_epoch}
    lines = [f"etcd gives out the epochs of {arguments.broker}, beginning after {master.log_epoch}"]
    return Shown(document, [*lines, *(_to_join(member) for member in seen.members)])


async def init(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    shown = await plan_init(admin, arguments)
    seen = await look(admin, arguments)
    master = _master(seen, arguments)
    group = master.info.get("memberGroup", "none")
    await seen.register.init(master.log_epoch, master.info["epochId"], master.address, "" if group == "none" else group)
    joined = await _join(admin, arguments.broker, seen.members)
    return Shown({**shown.document, **joined.document}, [shown.lines[0], *joined.lines], joined.troubles)


def _to_join(member: Member) -> str:
    if not member.answers:
        return f"{member.address} does not answer: `gantry admin ha join` once it does"
    return f"{member.address} joins" + (f" again, as member {member.number}" if member.number else "")


async def plan_join(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen, _ = await look_at_record(admin, arguments, else_=f": {HA_INIT}")
    document = {"broker": arguments.broker, "joins": [each.address for each in seen.members if each.answers]}
    return Shown(document, [_to_join(member) for member in seen.members])


async def join(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    await plan_join(admin, arguments)
    return await _join(admin, arguments.broker, (await look(admin, arguments)).members)


async def _join(admin: AdminClient, broker: str, members: list[Member]) -> Shown:
    """Ask one after the other: each number is given out once. A member that refuses keeps no other from joining."""
    rows, lines = list[dict[str, Any]](), list[str]()
    for member in members:
        try:
            number, why = await admin.succession.join(broker, member.address), ""
        except GantryError as exc:
            number, why = 0, str(exc)
        rows.append({"address": member.address, "number": number, "why": why})
        if number:
            lines.append(f"{member.address} is member {number}")
    troubles = [f"{row['address']} has not joined: {row['why']}" for row in rows if row["why"]]
    return Shown({"broker": broker, "joined": rows}, lines, troubles)


async def plan_adopt(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen, term = await look_at_record(admin, arguments, else_=f": {HA_INIT}")
    master = _master(seen, arguments)
    document = {"broker": arguments.broker, "master": master.address, "epoch": master.log_epoch, "was": term.epoch}
    line = (
        f"the record follows epoch {master.log_epoch} of {master.address}; it names epoch {term.epoch} of {term.owner}"
    )
    return Shown(document, [line])


async def adopt(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    shown = await plan_adopt(admin, arguments)
    seen = await look(admin, arguments)
    master = _master(seen, arguments)
    await seen.register.adopt(seen.view, master.log_epoch, master.info["epochId"], master.address)
    return shown


async def plan_remove(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    _, term = await look_at_record(admin, arguments)
    lines = [
        f"the record of {arguments.broker} is deleted: epoch {term.epoch} of {term.owner}",
        "take etcdEndpoints out of its brokers' settings first: with it they take no messages without a record",
    ]
    return Shown({"broker": arguments.broker, "epoch": term.epoch}, lines)


async def remove(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen, _ = await look_at_record(admin, arguments)
    await seen.register.remove(seen.view)
    return Shown({"broker": arguments.broker}, [f"etcd has no record of {arguments.broker} any more"])


async def show_members(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen = await look(admin, arguments)
    term = seen.view.term
    rows: list[dict[str, Any]] = [
        {
            "address": each.address,
            "id": each.broker_id,
            "number": each.number or None,
            "role": each.info.get("brokerRole", "") if each.answers else "does not answer",
            "epoch": each.log_epoch if each.answers else None,
            "end": each.end if each.answers else None,
            "inSync": term is not None and each.address in term.in_sync,
            "takesOver": term is not None and each.address != term.owner and not why_not(term, each),
        }
        for each in seen.members
    ]
    lines = table(
        ("address", "id", "member", "role", "epoch", "log end", "in sync on record", "can take over"),
        [
            [*list(row.values())[:6], "yes" if row["inSync"] else "no", "yes" if row["takesOver"] else "no"]
            for row in rows
        ],
    )
    return Shown({"broker": arguments.broker, "members": rows}, lines)


async def show_history(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    history = (await look(admin, arguments)).view.history
    rows: list[list[Cell]] = [
        [each.epoch, each.owner, each.reason, None if each.start < 0 else each.start, ago(each.at_ms)]
        for each in history
    ]
    lines = table(
        ("epoch", "master", "by", "log offset", "when"), rows, empty="etcd has no history of this broker name"
    )
    document = [{name: getattr(each, name) for name in each.__slots__} for each in history]
    return Shown({"broker": arguments.broker, "history": document}, lines)


async def show_explanation(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen = await look(admin, arguments)
    told = await failover.told(admin, arguments, seen)
    lines = explain(arguments.broker, seen.view, seen.members, told)
    return Shown({"broker": arguments.broker, "explanation": lines, "failover": told.to_dict()}, lines)


def _master_arguments(parser: argparse.ArgumentParser) -> None:
    broker_arguments(parser)
    parser.add_argument("--master", metavar="HOST:PORT", help="the master whose log counts (default: the only one)")
    parser.add_argument("--accept-unknown", action="store_true", help="go on although a member does not answer")


COMMANDS = {
    "ha": {
        "init": Command("create the record: this master's log counts", init, _master_arguments, plan_init),
        "join": Command("give each store its number in etcd", join, broker_arguments, plan_join),
        "members": Command("master and slaves, and which of them can be promoted", show_members, broker_arguments),
        "history": Command("which broker was the master, since when and by what", show_history, broker_arguments),
        "explain": Command(
            "who would be the master if this one died now, and why others would not", show_explanation, broker_arguments
        ),
        "status": Command(
            "who is the master since when, who is in sync, and the last changes", failover.show_status, broker_arguments
        ),
        "pause": Command(
            "have no broker become the master by itself, for maintenance",
            failover.pause,
            failover.pause_arguments,
            failover.plan_pause,
        ),
        "switchover": Command(
            "have a broker that is in sync become the master, through etcd",
            failover.switch_over,
            failover.switch_arguments,
            failover.plan_switch,
        ),
        "resume": Command("end the pause", failover.resume, failover.resume_arguments, failover.plan_resume),
        "adopt": Command(
            "update an outdated record, after etcd was restored from a backup",
            adopt,
            _master_arguments,
            plan_adopt,
            loses=True,
        ),
        "remove": Command("delete the record", remove, broker_arguments, plan_remove, loses=True),
    }
}
