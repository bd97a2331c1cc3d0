"""A change of masters as name servers see it, RocketMQ's own and ours: who is the master, and who can take it away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.peer import Peer as Cluster
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import Group, is_master, is_slave, promote, same_logs, send
from tests.appliance.peer import Peer, connected, registration
from tests.harness import LocalCluster
from tests.peers.fixtures import make_apache_peer
from tests.waiting import until

TWICE: dict[str, Any] = {"broker_name": "twice", "register_period_ms": 60_000}  # no registration but the test's


@pytest.fixture(scope="module", params=["RocketMQ's", "ours"])
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A name server alone."""
    home = tmp_path_factory.mktemp("names")
    cluster: Cluster = LocalCluster(home) if request.param == "ours" else make_apache_peer(home)
    try:
        cluster.start_namesrv()
        yield cluster
    finally:
        cluster.stop()


def is_ours(names: Cluster) -> bool:
    return isinstance(names, LocalCluster)


def port_of(names: Cluster) -> int:
    return int(names.namesrv_address.rpartition(":")[2])


async def addresses(peer: Peer, name: str) -> dict[int, str]:
    answer = await peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
    data = ClusterInfo.from_json(answer.body).broker_addr_table.get(name)
    return dict(data.broker_addrs) if data is not None else {}


async def test_a_registration_may_tell_an_epoch_which_rocketmqs_name_server_ignores(names: Cluster) -> None:
    first, second = "10.9.9.1:10911", "10.9.9.2:10911"
    async with connected(port_of(names)) as peer:

        async def registered(address: str, epoch: int) -> int:
            fields, body = registration(address, name="told-epochs")
            answer = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"masterEpoch": str(epoch)}, body)
            return answer.code

        assert await registered(first, 1) == ResponseCode.SUCCESS
        assert await registered(second, 2) == ResponseCode.SUCCESS
        assert await addresses(peer, "told-epochs") == {0: second}
        late = await registered(first, 1)
        if is_ours(names):
            assert (late, await addresses(peer, "told-epochs")) == (ResponseCode.SYSTEM_ERROR, {0: second})
        else:
            assert (late, await addresses(peer, "told-epochs")) == (ResponseCode.SUCCESS, {0: first}), "the last counts"


async def test_a_master_of_before_never_takes_its_successor_away(names: Cluster, tmp_path: Path) -> None:
    brokers = Group(names.namesrv_address, tmp_path)
    async with connected(port_of(names)) as peer:

        async def are(*wanted: str) -> None:
            async def as_wanted() -> bool:
                return await addresses(peer, "broker-a") == dict(enumerate(wanted))

            await until(as_wanted)

        async with brokers.broker("two", broker_id=1) as two:
            async with brokers.broker("one") as one:
                await send(one, 5)
                await same_logs(one, two)
                await are(one.controller.address, two.controller.address)
                assert (await promote(two, force="true")).code == ResponseCode.SUCCESS
                await until(lambda: is_master(two) and is_slave(one))  # which has closed as a master meanwhile
                await are(two.controller.address, one.controller.address)
                await send(two, 5)
                await same_logs(one, two)
            await are(two.controller.address)  # it stopped as a slave
            async with brokers.broker("one") as one:
                await are(two.controller.address, one.controller.address)
                assert is_slave(one)
        await are()


@pytest.mark.parametrize("first_goes", [True, False])
async def test_who_leaves_as_a_master_of_the_same_name_removes_only_itself(
    names: Cluster, tmp_path: Path, first_goes: bool
) -> None:
    """Two masters that know nothing of each other, as after a partition: RocketMQ's name server has whoever came last,
    ours refuses both until a person has chosen (test_rivals.py).
    """
    brokers = Group(names.namesrv_address, tmp_path)
    async with (
        connected(port_of(names)) as peer,
        brokers.broker("one", **TWICE) as one,
        brokers.broker("two", **TWICE) as two,
    ):
        stays, goes = (two, one) if first_goes else (one, two)
        if is_ours(names):
            await until(lambda: any(each.controller.standing.standing.rival for each in (one, two)))
        else:
            await stays.controller.outer_api.register_all()
            assert await addresses(peer, "twice") == {0: stays.controller.address}
        before = await addresses(peer, "twice")
        await goes.controller.outer_api.unregister_all()
        left = {broker_id: address for broker_id, address in before.items() if address != goes.controller.address}
        assert await addresses(peer, "twice") == left
