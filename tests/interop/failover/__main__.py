"""The program of this package: see __init__."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from appliance.bench.maven import rocketmqs
from tests.faults.kit.network import network
from tests.faults.kit.nodes import BROKERS, ETCD, NAMES
from tests.interop.class_archive import CLIENT
from tests.interop.clients import JAVA_SOURCES, ClientProgram, JavaClient
from tests.interop.failover.blows import BLOWS, CUTS, heal, strike
from tests.interop.failover.gaps import Gaps, summary
from tests.interop.failover.group import Group
from tests.interop.failover.program import gaps_of, kept_at, sdk
from tests.interop.go_client import GoClient
from tests.servers.etcd import etcd, urls_of

STEADY = [JAVA_SOURCES / f"{name}.java" for name in ("Lines", "Run", "Steady")]
JAVA_CLIENTS = {"java4": CLIENT, "java5": rocketmqs("5.3.3", "client")}
POLL_MS = (0, 5000)
OWN = {"rocketmq.client.rebalance.waitInterval": 20000}  # as the client has it
WATCHED_S = 75.0  # after a loss: more than two looks of a client at its routes
QUIET_S = 3.0  # before a loss
FIGURES = {
    "sends_s": "no accepted send",
    "deliveries_s": "no delivery",
    "struck_sends_s": "accepted by the struck name",
    "struck_deliveries_s": "delivered of the struck name",
    "routed_s": "its new master in the routes",
}


def clients(
    stack: contextlib.ExitStack, folder: Path, wanted: Sequence[str], group: Group, number: str
) -> Iterator[tuple[str, ClientProgram]]:
    """Each client's program, started; closed with the stack."""

    def where(client: str) -> tuple[str, str, str]:
        return group.name_server, group.new_topic(f"Steady-{client}-{number}"), f"{client}-{number}"

    if "sdk" in wanted:
        for way in ("asyncio", "threads"):
            yield f"SDK ({way})", stack.enter_context(sdk(*where(f"sdk-{way}"), way, folder))
    if "sdk5" in wanted:
        for way in ("asyncio", "threads"):
            program = sdk(*where(f"sdk5-{way}"), way, folder, refresh_s=5)
            yield f"SDK ({way}), 5 s", stack.enter_context(program)
    for client, artifacts in JAVA_CLIENTS.items():
        if client in wanted:
            java = JavaClient(folder, client=artifacts, programs=STEADY)
            for poll_ms in POLL_MS:
                name = f"{java.version}, {poll_ms // 1000} s" if poll_ms else java.version
                arguments = (*where(f"{client}-{poll_ms}"), poll_ms)
                yield name, stack.enter_context(java.run("Steady", *arguments, java_properties=OWN))
    if "go" in wanted:
        yield "rocketmq-client-go 2.1.2", stack.enter_context(GoClient(folder).run("steady", *where("go")))


def one_loss(folder: Path, group: Group, wanted: Sequence[str], blow: str, number: str) -> Mapping[str, Gaps]:
    """What one loss of the master costs each of the clients, which all run at once."""
    with contextlib.ExitStack() as stack:
        programs = dict(clients(stack, folder, wanted, group, number))
        for program in programs.values():
            program.wait_started()
            program.wait_for(lambda program=program: program.count("GOT") > 100, "traffic")  # type: ignore[misc]
        master = group.master()
        time.sleep(QUIET_S)  # of a group that is well
        lost_ms = time.time_ns() // 1_000_000
        strike(group, master, blow)
        deadline, found = time.monotonic() + WATCHED_S, {}
        while time.monotonic() < deadline:
            time.sleep(0.5)
            found = {name: gaps_of(program, lost_ms, "a") for name, program in programs.items()}
            if all(each.struck_deliveries_s is not None for each in found.values()):
                break
        routed_s = group.routed_s(lost_ms)
        heal(group, master, blow)
    group.master()
    return {name: replace(each, routed_s=routed_s) for name, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.failover", description=__doc__)
    parser.add_argument("--clients", default="sdk,sdk5,java4,java5,go", help="some of them")
    parser.add_argument("--blows", default="kill,stop", help=f"of {','.join(BLOWS)}; cuts need root")
    parser.add_argument("--names", default="1,2", help="broker names of the topic")
    parser.add_argument("--lease", type=int, default=5, help="failoverLeaseSeconds")
    parser.add_argument("--rounds", type=int, default=3, help="losses of each kind")
    parser.add_argument("--keep", type=Path, help="folder for stores and logs, which stays")
    asked = parser.parse_args()
    blows = asked.blows.split(",")
    for names in map(int, asked.names.split(",")):
        with (
            kept_at(asked.keep) as folder,
            running(folder, asked.lease, names, in_network=not set(blows).isdisjoint(CUTS)) as group,
        ):
            for blow in blows:
                title = f"{blow}, {names} name(s), lease {asked.lease} s"
                _print_table(title, _losses(folder, group, asked.clients.split(","), blow, asked.rounds))


@contextlib.contextmanager
def running(folder: Path, lease_s: int, names: int, *, in_network: bool) -> Iterator[Group]:
    """The group with an etcd. in_network: each of them is a node of its own."""
    with contextlib.ExitStack() as stack:
        if in_network:
            net = stack.enter_context(network([*BROKERS, NAMES, ETCD]))
            members = stack.enter_context(etcd(folder / "etcd", host=net.address[ETCD], runner=net.command(ETCD)))
        else:
            net, members = None, stack.enter_context(etcd(folder / "etcd"))
        yield stack.enter_context(Group(folder, urls_of(members), lease_s, names=names, net=net))


def _losses(folder: Path, group: Group, wanted: Sequence[str], blow: str, count: int) -> Mapping[str, Sequence[Gaps]]:
    rounds = defaultdict(list)
    for number in range(count):
        for client, found in one_loss(folder, group, wanted, blow, f"{blow}-{number}").items():
            rounds[client].append(found)
            print(json.dumps({"blow": blow, "round": number, "client": client, **asdict(found)}), flush=True)
    return rounds


def _print_table(title: str, rounds: Mapping[str, Sequence[Gaps]]) -> None:
    print(f"\n{title}: median / largest, s, of {max(map(len, rounds.values()))}")
    print(f"| client | {' | '.join(FIGURES.values())} |\n|---|{'---|' * len(FIGURES)}")
    for client, found in rounds.items():
        columns = (summary([getattr(each, figure) for each in found]) for figure in FIGURES)
        print(f"| {client} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main()
