"""The verbs: they wait between the steps of appliance/draining, print what is left, and stop the broker at --stop.

What runs out of time leaves the broker as it is then, and says what is left; `undrain` is the way back from each step.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from appliance.cli.admin.cluster import BrokerAddress, choose_brokers
from appliance.cli.admin.command import Command, Shown
from appliance.cli.admin.failures import NotThere
from appliance.draining import steps
from appliance.draining.left import Left, look
from appliance.process.held_broker import hold, hold_file, release
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.loader import broker_settings
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import ConfigError, ConnectError, RequestTimeout, ResponseError

WAIT_S = 300.0
START_S = 120.0  # a broker that was held reads its store first


async def plan_drain(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    broker, left = await _find(admin, arguments)
    verb = "rejects writes, and is stopped" if arguments.stop else "rejects writes"
    masters = [each.name for each in await choose_brokers(admin, None) if each.cluster == broker.cluster]
    lines = [
        f"{broker.name} at {broker.address} {verb} when its groups have consumed what it has",
        *(f"group {group} has {count:,} left" for group, count in sorted(left.groups.items())),
        *left.notes(),
    ]
    if masters == [broker.name]:
        lines.append("it is the only master of its cluster: producers can't send until `gantry admin undrain`")
    return Shown({"broker": broker.name, "groups": left.groups, "absentGroups": left.absent}, lines)


async def drain(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    broker, _ = await _find(admin, arguments)
    folder = folder_of(_brokers_folder(arguments), broker.address) if arguments.stop else None
    started = time.monotonic()
    while True:
        await steps.leave_routes(admin, broker.name)
        if _elapsed(started) >= min(arguments.routes, arguments.wait):
            break
        _say(arguments, started, await look(admin, broker.address))
        await asyncio.sleep(steps.AGAIN_S)  # no client announces that it has new routes
    await steps.reject_writes(admin, broker.address)
    while (left := await look(admin, broker.address)).groups and _elapsed(started) < arguments.wait:
        _say(arguments, started, left)
        await asyncio.sleep(steps.AGAIN_S)  # no broker announces that a group has consumed
    if left.groups and arguments.wait:
        return _unfinished(broker, left, arguments)
    if folder is not None:
        hold(folder)
        await _until_stopped(admin, broker)
    done = f"{broker.name} is drained and {'stopped' if folder else 'rejects writes'}, after {_elapsed(started):.0f} s"
    undo = f"`gantry admin undrain {broker.name}` undoes it"
    document = {"broker": broker.name, "isDrained": True, "isStopped": folder is not None, "groups": left.groups}
    accepted = [f"group {group} had {count:,} left (--wait 0)" for group, count in sorted(left.groups.items())]
    return Shown(document, [done, *accepted, *left.notes(), undo])


async def plan_undrain(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    folders = held_folders(_brokers_folder(arguments), arguments.broker)
    if folders:
        return Shown({"broker": arguments.broker}, [f"{arguments.broker} starts, and accepts writes"])
    broker = await _broker(admin, arguments)
    return Shown({"broker": broker.name}, [f"{broker.name} accepts writes"])


async def undrain(admin: AdminClient, arguments: argparse.Namespace) -> Shown:
    started = held_folders(_brokers_folder(arguments), arguments.broker)
    for folder in started:
        release(folder)
    deadline = time.monotonic() + (START_S if started else 0)
    while True:
        try:
            broker = await _broker(admin, arguments)
            await steps.undrain(admin, broker.name, broker.address)
            break
        except NotThere as exc:
            if time.monotonic() > deadline:
                raise NotThere(f"{exc}; is the appliance running?" if started else str(exc)) from exc
        await asyncio.sleep(steps.AGAIN_S)  # no name server announces a broker
    verb = "runs again and accepts" if started else "accepts"
    return Shown({"broker": broker.name, "isStarted": bool(started)}, [f"{broker.name} {verb} writes"])


async def _until_stopped(admin: AdminClient, broker: BrokerAddress) -> None:
    """Until the supervisor has stopped it. Raises NotThere when it does not."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            await admin.brokers.runtime_info(broker.address)
        except ConnectError:
            return
        except (RequestTimeout, ResponseError):
            pass  # it is stopping
        await asyncio.sleep(steps.AGAIN_S)  # no broker announces its end
    raise NotThere(f"{broker.name} was not stopped within {START_S:.0f} s: is the appliance running?")


async def _find(admin: AdminClient, arguments: argparse.Namespace) -> tuple[BrokerAddress, Left]:
    broker = await _broker(admin, arguments)
    return broker, await look(admin, broker.address)


async def _broker(admin: AdminClient, arguments: argparse.Namespace) -> BrokerAddress:
    (broker,) = await choose_brokers(admin, [arguments.broker])
    return broker


def _brokers_folder(arguments: argparse.Namespace) -> Path:
    return ApplianceConfig.load({"data": arguments.data}).brokers_folder


def _unfinished(broker: BrokerAddress, left: Left, arguments: argparse.Namespace) -> Shown:
    groups = ", ".join(f"{group} ({count:,})" for group, count in sorted(left.groups.items()))
    text = (
        f"{broker.name} is not drained: after {arguments.wait:.0f} s these groups have messages left: {groups}. It "
        "gets no new writes, and was not stopped. Run the command again to wait longer, with --wait 0 to leave these "
        f"messages for later, or `gantry admin undrain {broker.name}`"
    )
    document = {"broker": broker.name, "isDrained": False, "isStopped": False, "groups": left.groups}
    return Shown(document, left.notes(), [text])


def _say(arguments: argparse.Namespace, started: float, left: Left) -> None:
    """Progress, for a person: not among what --json prints."""
    if not arguments.json:
        groups = ", ".join(f"{group} {count:,}" for group, count in sorted(left.groups.items())) or "nothing"
        print(f"{_elapsed(started):4.0f} s: left for groups: {groups}", file=sys.stderr, flush=True)


def _elapsed(started: float) -> float:
    return time.monotonic() - started


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds, such as 300")
    return float(text)


def _undrain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name of the broker")
    parser.add_argument("--data", type=Path, metavar="DIR", help="data folder of the appliance here, if it runs it")


def _drain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("broker", metavar="BROKER", help="name or address")
    parser.add_argument(
        "--wait", type=_seconds, default=WAIT_S, metavar="S",
        help=f"how long to wait for groups (default: {WAIT_S:.0f}); 0: do not wait",
    )  # fmt: skip
    parser.add_argument(
        "--routes", type=_seconds, default=steps.ROUTES_S, metavar="S",
        help=f"how long clients take to renew their routes (default: {steps.ROUTES_S:.0f})",
    )  # fmt: skip
    parser.add_argument("--stop", action="store_true", help="then stop the broker, which an appliance here runs")
    parser.add_argument("--data", type=Path, metavar="DIR", help="with --stop: data folder of that appliance")


COMMANDS = {
    "drain": {
        "": Command(
            "take a broker out of service without errors at its clients",
            drain,
            _drain_arguments,
            plan_drain,
            loses=True,
        )
    },
    "undrain": {"": Command("undo a drain", undrain, _undrain_arguments, plan_undrain)},
}


def folder_of(brokers: Path, address: str) -> Path:
    """The folder of the broker that listens at this address. Raises ConfigError where none does."""
    port = address.rpartition(":")[2]
    for folder, settings in broker_settings(brokers):
        if settings.get("listenPort") == port:
            return folder
    raise ConfigError(
        f"no broker of {brokers.parent} listens at {address}: run the command where it runs, as the owner of its data "
        "folder, and name that folder with --data; or leave --stop out, and stop the broker by hand"
    )


def held_folders(brokers: Path, name: str) -> list[Path]:
    """Those of this broker name that are held."""
    return [
        folder
        for folder, its in broker_settings(brokers)
        if its.get("brokerName") == name and hold_file(folder).exists()
    ]
