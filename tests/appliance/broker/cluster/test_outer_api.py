"""BrokerOuterApi against real name servers: at start, after changes, after an outage, at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.bench.processes import free_ports
from appliance.broker.cluster.outer_api import RETRIES_BEFORE_BACK_OFF, BrokerOuterApi, NamesrvLink, split_addresses
from appliance.namesrv.controller import NamesrvController
from appliance.settings.roles import BrokerConfig
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.codes import RequestCode
from tests.appliance.broker.cluster.registering import ADDRESS, HA_ADDRESS, namesrv, registering, topic_table
from tests.appliance.peer import connected
from tests.conftest import time_limit
from tests.waiting import until

IDLE_TURNS_MAX = 100  # of the loop in 0.3 s; one that spins makes thousands


def knows(server: NamesrvController, topic: str = "TBW102") -> bool:
    return server.routes.pickup_topic_route(topic) is not None


@pytest.mark.parametrize("compressed", [False, True])
async def test_every_name_server_learns_of_the_broker_and_its_new_topics(tmp_path: Path, compressed: bool) -> None:
    async with (
        namesrv(tmp_path / "1") as first,
        namesrv(tmp_path / "2") as second,
        registering(tmp_path, first.port, second.port, compressed_register=compressed) as (_, topics),
    ):
        await until(lambda: knows(first) and knows(second))
        topics.create_on_send("T", "TBW102", 4, "test")
        await until(lambda: knows(first, "T") and knows(second, "T"))
        route = first.routes.pickup_topic_route("T")
        assert route is not None
        assert route.broker_datas[0].broker_addrs == {0: ADDRESS}
        assert route.queue_datas[0].write_queue_nums == 4


async def test_a_topic_made_by_hand_is_known_when_register_all_returns(tmp_path: Path) -> None:
    async with namesrv(tmp_path) as server, registering(tmp_path, server.port) as (outer_api, topics):
        await until(lambda: knows(server) and outer_api.registered[0] == 1)  # its answer may be on the way
        config = TopicConfig("byHand", 2, 2)
        topics.update(config)
        assert await outer_api.register_all(topic=config) == 1
        assert knows(server, "byHand")


async def test_a_restarted_name_server_knows_the_broker_within_two_seconds(tmp_path: Path) -> None:
    port = free_ports()  # no outgoing connection takes it while the name server is away
    async with namesrv(tmp_path, port) as server, registering(tmp_path, port) as (_, topics):
        await until(lambda: knows(server))
        await server.__aexit__(None, None, None)
        await asyncio.sleep(0.3)  # the name server is away for a while
        topics.create_on_send("whileDown", "TBW102", 4, "test")
        async with namesrv(tmp_path, port) as again:
            await until(lambda: knows(again, "whileDown"), time_limit(2))


async def test_a_name_server_that_is_down_delays_nobody_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with namesrv(tmp_path) as server, registering(tmp_path, free_ports(), server.port) as (outer_api, _):
        await until(lambda: knows(server))
        assert await outer_api.register_all() == 1
        assert await outer_api.register_all() == 1
    events = [getattr(record, "event", "") for record in caplog.records]
    assert events.count("namesrv_unreachable") == 1


@pytest.mark.parametrize(("setting_ms", "period_s"), [(1, 10), (30_000, 30), (59_999, 59.999), (3_600_000, 60)])
async def test_the_period_of_registrations_stays_within_rocketmqs_limits(
    tmp_path: Path, setting_ms: int, period_s: float
) -> None:
    async with registering(tmp_path, register_period_ms=setting_ms) as (outer_api, _):
        assert outer_api.period_s == period_s


async def test_after_the_good_bye_nothing_is_registered_any_more(tmp_path: Path) -> None:
    async with namesrv(tmp_path) as server, registering(tmp_path, server.port) as (outer_api, topics):
        await until(lambda: knows(server))
        await outer_api.unregister_all()
        assert not knows(server)
        topics.create_on_send("late", "TBW102", 4, "test")
        assert await outer_api.register_all() == 0
        await asyncio.sleep(0.05)  # a registration would arrive meanwhile
        assert not knows(server)


async def test_a_change_after_the_good_bye_does_not_keep_the_loop_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    turns = 0

    def counted(time: Callable[[], float] = loop.time) -> float:  # asked once in each turn of the loop, or more often
        nonlocal turns
        turns += 1
        return time()

    async with namesrv(tmp_path) as server, registering(tmp_path, server.port) as (outer_api, topics):
        await until(lambda: knows(server))
        await outer_api.unregister_all()
        topics.create_on_send("late", "TBW102", 4, "test")
        await asyncio.sleep(0.1)  # what the change wakes
        with monkeypatch.context() as patch:
            patch.setattr(loop, "time", counted)
            await asyncio.sleep(0.3)  # the loop's turns of this time are counted
        assert turns < IDLE_TURNS_MAX
        assert not knows(server)


async def test_topics_turn_ordered_as_the_name_server_says(tmp_path: Path) -> None:
    async with namesrv(tmp_path) as server, registering(tmp_path, server.port) as (outer_api, topics):
        await until(lambda: knows(server))
        topics.update(TopicConfig("ordered"))
        async with connected(server.port) as tool:
            fields = {"namespace": "ORDER_TOPIC_CONFIG", "key": "ordered", "value": "broker-a:4"}
            await tool.ask(RequestCode.PUT_KV_CONFIG, fields)
        await outer_api.register_all()
        assert topics.configs["ordered"].order
        assert not topics.configs["TBW102"].order


async def test_a_closed_broker_announces_its_topics_with_less_permission(tmp_path: Path) -> None:
    async with namesrv(tmp_path) as server, registering(tmp_path, server.port, permission=4):
        await until(lambda: knows(server))
        route = server.routes.pickup_topic_route("BenchmarkTest")
        assert route is not None
        assert route.queue_datas[0].perm == 4


async def test_without_force_an_unchanged_version_is_asked_for_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.cluster.outer_api.PERIOD_S_MIN", 0.05)
    async with (
        namesrv(tmp_path) as server,
        registering(tmp_path, server.port, force_register=False, register_period_ms=50) as (outer_api, topics),
    ):
        await until(lambda: knows(server))
        before = server.lanes.by_name["namesrv"].served
        monkeypatch.setattr(outer_api, "_register", None)  # would fail if anything were registered
        await until(lambda: server.lanes.by_name["namesrv"].served >= before + 3)
        monkeypatch.undo()
        topics.data_version.bump(1)
        server.routes.delete_topic("BenchmarkTest")
        await until(lambda: knows(server, "BenchmarkTest"))


async def test_topics_that_change_all_the_time_do_not_put_off_the_full_registration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.broker.cluster.outer_api.PERIOD_S_MIN", 0.3)
    async with namesrv(tmp_path) as server, registering(tmp_path, server.port, register_period_ms=300) as (_, topics):
        await until(lambda: knows(server))
        server.routes.delete_topic("BenchmarkTest")  # only a registration of everything brings it back
        async with asyncio.timeout(60):
            while not knows(server, "BenchmarkTest"):
                topics.update(TopicConfig("T", read_queue_nums=4, write_queue_nums=4))
                await asyncio.sleep(0.001)


def test_retries_come_each_second_and_then_less_often() -> None:
    link = NamesrvLink("127.0.0.1:1")
    delays = []
    for _ in range(RETRIES_BEFORE_BACK_OFF + 8):
        link.failures += 1
        delays.append(link.retry_delay_s(30.0))
    assert delays[:RETRIES_BEFORE_BACK_OFF] == [1.0] * RETRIES_BEFORE_BACK_OFF
    assert delays[RETRIES_BEFORE_BACK_OFF:][:5] == [2.0, 4.0, 8.0, 16.0, 30.0]
    assert delays[-1] == 30.0


def test_addresses_are_split_and_each_kept_once() -> None:
    assert split_addresses(" a:1; b:2;;a:1 ") == ["a:1", "b:2"]
    assert split_addresses("") == []


def test_a_broker_without_name_servers_has_nothing_to_do(tmp_path: Path) -> None:
    config = BrokerConfig()
    outer_api = BrokerOuterApi(config, topic_table(tmp_path, config), address=ADDRESS, ha_address=HA_ADDRESS)
    outer_api.topic_changed(TopicConfig("T"))
    assert asyncio.run(outer_api.register_all()) == 0
