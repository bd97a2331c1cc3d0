"""Figures of the services in request 28, from a broker that serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.broker.access.lane_limits import lane_limits
from gantrymq.remoting.admin_bodies import KVTable
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer, connected
from tests.harness import ServingCluster, serving
from tests.waiting import until

PULL = {
    "consumerGroup": "G", "topic": "T", "queueId": "0", "queueOffset": "1", "maxMsgNums": "1", "sysFlag": "6",
    "commitOffset": "0", "suspendTimeoutMillis": "600000", "subscription": "*", "subVersion": "0",
}  # fmt: skip


async def figures(peer: Peer) -> dict[str, str]:
    return KVTable.from_json((await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).body).table


async def test_each_lane_tells_its_watermarks_under_the_name_of_its_setting(tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as peer:
        limits, table = lane_limits(cluster.broker.config), await figures(peer)
        assert table["EndTransactionThreadPoolQueueCapacity"] == str(limits["transaction"].capacity)
        for prefix, capacity in {
            "sendThreadPoolQueue": limits["send"].capacity,
            "pullThreadPoolQueue": limits["pull"].capacity,
            "queryThreadPoolQueue": limits["query"].capacity,
            "replyThreadPoolQueue": limits["reply"].capacity,
            "heartbeatThreadPoolQueue": limits["heartbeat"].capacity,
            "clientManagerThreadPoolQueue": limits["client"].capacity,
            "consumerManagerThreadPoolQueue": limits["consumer"].capacity,
            "adminBrokerThreadPoolQueue": limits["admin"].capacity,
        }.items():
            assert table[f"{prefix}Capacity"] == str(capacity)
            assert table[f"{prefix}Size"] == "0"
            assert table[f"{prefix}HeadWaitTimeMills"] == "0"
        served = int(table["adminBrokerThreadPoolQueueServed"])
        assert int((await figures(peer))["adminBrokerThreadPoolQueueServed"]) == served + 1


async def test_it_tells_who_is_connected_what_waits_and_which_name_servers_know_it(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as cluster,
        connected(cluster.broker.port) as peer,
        connected(cluster.broker.port) as waiting,
    ):
        await make_topic(waiting)
        waiting.write(request(RequestCode.PULL_MESSAGE, PULL))
        await until_held(cluster)
        table = await figures(peer)
        assert table["nameServersRegistered"] == "1/1"
        assert table["heldPullRequests"] == "1"
        assert table["connections"] == "2"
        assert table["connectionsParked"] == "0"
        assert table["tablesNotSaved"] == "none"


@pytest.mark.parametrize(
    ("settings", "row"), [({"send_capacity": 0}, "Rejected"), ({"send_wait_ms": -1000}, "Expired")]
)
async def test_refused_requests_are_counted(tmp_path: Path, settings: dict[str, int], row: str) -> None:
    async with serving(tmp_path) as cluster, connected(cluster.broker.port) as peer:
        for name, value in settings.items():  # settings that no file may hold, for a lane that refuses everything
            object.__setattr__(cluster.broker.config, name, value)
        cluster.broker.settings_changed(set())
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields())
        assert answer.code == ResponseCode.SYSTEM_BUSY
        assert (await figures(peer))[f"sendThreadPoolQueue{row}"] == "1"


def send_fields() -> dict[str, str]:
    return dict.fromkeys("efghj", "0") | {"a": "P", "b": "T", "c": "TBW102", "d": "1", "i": "", "k": "false"}


def request(code: int, ext_fields: dict[str, str]) -> bytes:
    return RemotingCommand.request(code, ext_fields).encode()


async def make_topic(peer: Peer) -> None:
    answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields())
    assert answer.code == ResponseCode.SUCCESS, answer.remark


async def until_held(cluster: ServingCluster) -> None:
    await until(lambda: cluster.broker.hold.held_count > 0)
