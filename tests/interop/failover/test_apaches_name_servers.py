"""A group with failover at two of RocketMQ's own name servers, which believe whoever registers last; a Java client."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq.errors import GantryError
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode
from tests.harness import LocalCluster
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.failover.group import Group
from tests.interop.failover.program import gaps_of
from tests.peers.fixtures import make_apache_peer
from tests.servers.etcd import etcd, urls_of
from tests.waiting import Beside, wait_until

LEASE_S = 5
POLL_MS = 1000
REGISTRATIONS_S = 3.0  # for a minute after a change each member registers once a second


class Routes(Beside):
    """Asks each name server all the time while its block runs. masters: those of the name, by name server, each once
    in a row."""

    def __init__(self, name_servers: list[Peer]) -> None:
        self.masters: dict[str, list[str]] = {each.namesrv_address: [] for each in name_servers}
        super().__init__(self._look, "routes")

    def _look(self) -> None:
        while not self.ends.wait(0.02):
            for address, seen in self.masters.items():
                master = ids_at(address).get(0)
                if master is not None and seen[-1:] != [master]:
                    seen.append(master)


def ids_at(name_server: str) -> dict[int, str]:
    try:
        body = rpc.ask(name_server, RequestCode.GET_BROKER_CLUSTER_INFO).body
    except GantryError:  # starved: asked again soon
        return {}
    data = ClusterInfo.from_json(body).broker_addr_table.get("a")
    return dict(data.broker_addrs) if data is not None else {}


@pytest.fixture(scope="module")
def name_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Peer]]:
    with contextlib.ExitStack() as stack:
        made: list[Peer] = [make_apache_peer(tmp_path_factory.mktemp(f"names{number}")) for number in range(2)]
        for each in made:
            stack.callback(each.stop)
            each.start_namesrv()
        yield made


@pytest.fixture
def group(tmp_path: Path, name_servers: list[Peer]) -> Iterator[Group]:
    with (
        etcd(tmp_path / "etcd") as members,
        Group(tmp_path, urls_of(members), LEASE_S, name_servers=name_servers) as running,
    ):
        yield running


def strike(master: LocalCluster, blow: signal.Signals) -> None:
    if blow == signal.SIGKILL:
        master.kill_broker()
    else:
        os.kill(master.broker.pid, blow)


def come_back(struck: LocalCluster, blow: signal.Signals) -> None:
    if blow == signal.SIGKILL:
        struck.start_broker()
    else:
        os.kill(struck.broker.pid, signal.SIGCONT)


def wait_for_traffic(client: ClientProgram, lost_ms: int) -> None:
    """Sends that began after that time were accepted by the group, and came to the consumer."""
    wait_until(lambda: gaps_of(client, lost_ms, "a").struck_deliveries_s is not None)


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=lambda blow: blow.name)
def test_both_have_the_successor_for_good_and_the_old_master_as_a_slave(
    group: Group, name_servers: list[Peer], java: JavaClient, blow: signal.Signals
) -> None:
    first, topic = group.master(), group.new_topic(f"Routed-{blow.name}")
    servers = [each.namesrv_address for each in name_servers]
    with java.run("Steady", ";".join(servers), topic, topic, POLL_MS) as client, Routes(name_servers) as routes:
        wait_for_traffic(client, 0)
        lost_ms = time.time_ns() // 1_000_000
        strike(first, blow)
        wait_until(lambda: all(seen[-1] != first.broker_address for seen in routes.masters.values()))
        wait_for_traffic(client, lost_ms)
        come_back(first, blow)
        second = group.master()
        every = {each.broker_address for each in group.members}
        wait_until(lambda: all(set(ids_at(each).values()) == every for each in servers))
        time.sleep(REGISTRATIONS_S)  # one of the old master as the master would come in this time
        wait_for_traffic(client, time.time_ns() // 1_000_000)
    owners = group.owners()  # on a starved machine there may be more than two
    for seen in routes.masters.values():
        epochs = iter(owners)
        assert all(master in epochs for master in seen), f"{seen} were masters at a name server, {owners} on record"
        assert seen[-1] == owners[-1] != first.broker_address
    first.stop_broker()  # as a slave: RocketMQ's name server removes by id
    wait_until(lambda: all(first.broker_address not in ids_at(each).values() for each in servers))
    wait_until(lambda: [ids_at(each).get(0) for each in servers] == [second.broker_address] * 2)
