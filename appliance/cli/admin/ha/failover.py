"""The verbs of automatic failover: what it would do, and how a person pauses it."""

from __future__ import annotations

import argparse
import getpass
import os
import time
import uuid

from appliance.broker.failover.on_record import Seen as SeenFigures
from appliance.broker.failover.told import status_of
from appliance.cli.admin.command import Shown
from appliance.cli.admin.ha import cancelling, unclean
from appliance.cli.admin.ha.explain import beware, by_itself, paused, unfinished
from appliance.cli.admin.ha.looking import FRESH_S, Seen, broker_arguments, has_renewed, look, look_at_record
from appliance.cli.admin.ha.switching import until_switched
from appliance.cli.admin.output import ago, duration, when
from appliance.cli.tables import Cell, facts, table
from appliance.failover.switching import SWITCH_S
from appliance.failover.view import Pause, Switch, TermState
from appliance.process.awake import awake_s
from appliance.register.term import Term
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.failover import WHY_CHARS_MAX, FailoverMember, FailoverStatus
from gantrymq.client.admin.members import Member
from gantrymq.errors import ConfigError, GantryError


async def told(admin: AdminClient, arguments: argparse.Namespace, seen: Seen | None = None) -> FailoverStatus:
    """As a broker tells it, which has watched the others; read from etcd when no broker answers."""
    try:
        status = await admin.succession.failover(arguments.broker)
    except GantryError:
        status = FailoverStatus(arguments.broker, unknown="no broker answers")
    if not status.unknown:
        return status
    seen = seen or await look(admin, arguments)
    figures = SeenFigures()
    recent, trouble = figures.recent(seen.view.figures, awake_s()), await seen.register.trouble()
    return status_of(FailoverStatus(arguments.broker), seen.view, recent, trouble, figures.unsure)


async def show_status(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    status = await told(admin, arguments)
    return Shown(status.to_dict(), [status.unknown] if status.unknown else _lines(status))


def _lines(status: FailoverStatus) -> list[str]:
    pairs: list[tuple[str, Cell]] = [
        ("master", _master(status)),
        ("since", f"{when(status.since_ms)} ({ago(status.since_ms)})" if status.since_ms else None),
        ("epoch", status.epoch),
        ("in sync", ", ".join(status.in_sync)),
        ("a send waits for", "all of them" if status.is_complete else "not all of them"),
        ("automatic failover", f"on, lease {status.lease_s:.0f} s" if status.is_automatic else "off"),
        ("paused", None if status.pause is None else paused(status.pause)),
        ("switchover", None if status.switch is None else f"to {status.switch.address} has been asked for"),
    ]
    rows: list[list[Cell]] = [
        [each.epoch, each.master, each.reason, None if each.out_ms < 0 else duration(each.out_ms), ago(each.at_ms)]
        for each in status.changes
    ]
    changes = table(("epoch", "master", "by", "taken over after", "when"), rows, empty="no changes on record")
    tails = [
        f"{each.address} keeps what only it had: `gantry store dump {each.folder} records --body`"
        for each in status.kept_tails
    ]
    by_itself_lines = by_itself(status) if status.is_automatic else []
    return [*beware(status), *facts(pairs), *unfinished(status), *by_itself_lines, *tails, "", *changes]


def _master(status: FailoverStatus) -> str:
    if status.state == TermState.RELEASED:
        return f"none: {status.master} has given up its role"
    return f"{status.master}, which does not serve yet" if status.state == TermState.OPENING else status.master


async def plan_pause(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    seen, _ = await look_at_record(admin, arguments)
    if seen.view.pause is not None:
        raise ConfigError(f"{seen.view.pause.who} has paused failover already: {seen.view.pause.why}")
    lines = [f"no broker of {arguments.broker} becomes the master by itself until `gantry admin ha resume`"]
    return Shown({"broker": arguments.broker, "why": arguments.why}, lines)


async def pause(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    shown, (seen, _) = await plan_pause(admin, arguments), await look_at_record(admin, arguments)
    now_ms = int(time.time() * 1000)
    until_ms = now_ms + int(arguments.minutes * 60_000) if arguments.minutes else 0
    await seen.register.pause(seen.view, Pause(arguments.who or _user(), arguments.why, now_ms, until_ms))
    return shown


async def plan_resume(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Once it is resumed, a master that does not renew is replaced: a person has to want that."""
    seen, term = await look_at_record(admin, arguments)
    if seen.view.pause is None:
        raise ConfigError(f"failover of {arguments.broker} is not paused")
    if seen.view.beat is not None and not arguments.force and not await has_renewed(seen):
        raise ConfigError(
            f"{term.owner} has not renewed in etcd for {FRESH_S:.0f} s: without the pause another broker replaces it. "
            "Start it first, or --force"
        )
    return Shown({"broker": arguments.broker}, [f"the pause ends: {paused_by(seen)}"])


def paused_by(seen: Seen) -> str:
    assert seen.view.pause is not None
    return f"{seen.view.pause.who} began it {ago(seen.view.pause.since_ms)}: {seen.view.pause.why}"


async def resume(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    shown, (seen, _) = await plan_resume(admin, arguments), await look_at_record(admin, arguments)
    await seen.register.resume(seen.view)
    return shown


async def plan_switch(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    if cancelling.is_asked(arguments):
        return cancelling.checked(arguments.broker, (await look_at_record(admin, arguments))[0].view)
    if unclean.is_asked(arguments):
        return (await unclean.checked(admin, arguments, await _status(admin, arguments))).shown
    status, target = await _target(admin, arguments)
    lines = [f"{status.master} gives its role to {target.address} once that has everything; nothing is lost"]
    return Shown({"broker": arguments.broker, "from": status.master, "to": target.address}, lines)


async def _status(admin: AdminClient, arguments: argparse.Namespace) -> FailoverStatus:
    """ConfigError where etcd does not decide who is the master, or a pause keeps it from that."""
    status = await told(admin, arguments)
    if status.unknown or not status.is_automatic:
        why = status.unknown or "automaticFailover is off"
        raise ConfigError(f"{why}: use `gantry admin switchover {arguments.broker}`")
    if status.pause is not None:
        raise ConfigError(f"{paused(status.pause)}. Use `gantry admin ha resume` first")
    return status


async def _target(admin: AdminClient, arguments: argparse.Namespace) -> tuple[FailoverStatus, FailoverMember]:
    status = await _status(admin, arguments)
    wanted = arguments.to or status.next_master
    if not wanted:
        raise ConfigError(f"no other member can become the master: {status.why_none}")
    target = next((each for each in status.members if each.address == wanted), None)
    if target is None or target.is_master:
        raise ConfigError(f"{wanted} is " + ("no member that has joined" if target is None else "the master already"))
    refusal = target.refusal or await _says_itself(admin, wanted)
    if refusal:
        raise ConfigError(f"{wanted} can't become the master: {refusal}")
    return status, target


async def _says_itself(admin: AdminClient, address: str) -> str:
    """Why a slave can't serve as the master, as it says now: in etcd there is only what it said some seconds ago."""
    try:
        slave = Member(address, None, await admin.brokers.runtime_info(address))
    except GantryError as exc:
        return f"it does not answer, so it may be opening, or have ended: {exc}"
    return "" if slave.info.get("slaveState") == "copying" else f"it {slave.doing}"


async def switch_over(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    """Ask in etcd, and wait."""
    if cancelling.is_asked(arguments):
        seen, _ = await look_at_record(admin, arguments)
        return await cancelling.cancel(arguments.broker, seen.register, _user())
    if unclean.is_asked(arguments):
        found = await unclean.checked(admin, arguments, await _status(admin, arguments))
        return await _until_switched(arguments, found.seen, found.switch, arguments.to, SWITCH_S + found.lease_s)
    (_, target), (seen, term) = await _target(admin, arguments), await look_at_record(admin, arguments)
    switch = Switch(str(uuid.uuid4()), target.number, True, 0, term.epoch, seen.view.term_revision)
    return await _until_switched(arguments, seen, switch, target.address, SWITCH_S)


async def _until_switched(arguments: argparse.Namespace, seen: Seen, switch: Switch, to: str, within_s: float) -> Shown:
    began = time.monotonic()
    term = await until_switched(seen.register, seen.view, switch, to, within_s)
    return _switched(arguments.broker, term, to, time.monotonic() - began)


def _switched(broker: str, term: Term, to: str, took_s: float) -> Shown:
    document = {"broker": broker, "master": term.owner, "epoch": term.epoch}
    troubles = [f"{to} was slower"] if term.owner != to else []
    if term.state == TermState.OPENING:
        troubles.append(f"{term.owner} does not serve yet")
    return Shown(document, [f"{term.owner} is the master in epoch {term.epoch}, {took_s:.1f} s later"], troubles)


def switch_arguments(parser: argparse.ArgumentParser) -> None:
    broker_arguments(parser)
    parser.add_argument("--to", metavar="HOST:PORT", help="the next master (default: the one that would take over now)")
    parser.add_argument("--cancel", action="store_true", help="take back the one that was asked for and has not begun")
    unclean.add_arguments(parser)


def pause_arguments(parser: argparse.ArgumentParser) -> None:
    broker_arguments(parser)
    parser.add_argument("--why", required=True, type=_why, help="for those who find it paused")
    parser.add_argument("--who", default="", help="who pauses it (default: the user of this shell)")
    parser.add_argument("--minutes", type=float, default=0.0, metavar="N", help="planned time: it does not end it")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in a container
        return f"uid {os.getuid()}"


def _why(text: str) -> str:
    if not 0 < len(text) <= WHY_CHARS_MAX:
        raise argparse.ArgumentTypeError(f"1 to {WHY_CHARS_MAX} characters")
    return text


def resume_arguments(parser: argparse.ArgumentParser) -> None:
    broker_arguments(parser)
    parser.add_argument("--force", action="store_true", help="also when the master does not renew in etcd")
