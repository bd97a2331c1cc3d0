"""Who is in sync, and what is confirmed: each slave in the set has all of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.replication.in_sync import GONE_S, LOOK_S_MAX, InSyncSet
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.process.json_file import StateFileError
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.replication.pair import (
    MASTER,
    PULL,
    STORE,
    TOPIC,
    CuttingProxy,
    caught_up,
    follower_of,
    send,
    slave_of,
)
from tests.appliance.peer import Peer, connected
from tests.harness import serving
from tests.waiting import until

LAG_S = 3.0
FAR_AHEAD_MS = 1 << 50
GATED: dict[str, Any] = MASTER | {
    "broker_role": "SYNC_MASTER",
    "all_ack_in_sync": True,
    "read_confirmed_only": True,
    "slave_timeout_ms": 60_000,
    "ha_housekeeping_ms": 3_600_000,
    "in_sync_lag_ms": 3_600_000,  # what the test holds back is no slave that left
}


def joined(*names: str, end: int = 100) -> InSyncSet:
    """A set that these have joined at time 0, having all."""
    in_sync = InSyncSet(LAG_S, end)
    for name in names:
        in_sync.acknowledged(name, end, end, 0.0)
        assert in_sync.look(end, 0.0) == ([name], [])
    assert in_sync.names == sorted(names)
    return in_sync


def test_without_slaves_the_master_confirms_alone() -> None:
    in_sync = InSyncSet(LAG_S, 100)
    in_sync.look(250, 1.0)
    assert (in_sync.confirmed, in_sync.names, in_sync.has_required) == (250, [], False)


def test_the_acknowledgement_with_which_a_slave_comes_in_sync_is_told() -> None:
    in_sync = joined("a")
    in_sync.acknowledged("a", 200, 200, 0.1)
    in_sync.acknowledged("b", 200, 200, 0.1)
    in_sync.acknowledged("a", 300, 300, 0.2)
    assert in_sync.look(300, 0.2) == (["b"], []) and in_sync.names == ["a"], "it lacks what was confirmed without it"
    assert in_sync.acknowledged("b", 300, 300, 0.3) and in_sync.names == ["a", "b"]
    assert not in_sync.acknowledged("b", 310, 310, 0.4)


def test_what_any_slave_of_the_set_lacks_is_not_confirmed() -> None:
    in_sync = joined("a", "b")
    in_sync.acknowledged("a", 300, 300, 0.5)
    assert in_sync.confirmed == 100
    in_sync.acknowledged("b", 200, 300, 0.5)
    assert in_sync.confirmed == 200
    in_sync.acknowledged("b", 150, 300, 0.6)
    assert in_sync.confirmed == 200, "it never goes back"


def test_a_slave_that_joins_is_required_first_and_in_sync_once_it_has_what_is_confirmed() -> None:
    in_sync = InSyncSet(LAG_S, 100)
    in_sync.acknowledged("a", 90, 100, 0.0)
    in_sync.acknowledged("a", 100, 120, 0.1)  # all that there was when it last spoke
    assert in_sync.look(130, 0.2) == (["a"], [])
    assert (in_sync.confirmed, in_sync.names) == (120, [])
    in_sync.acknowledged("a", 130, 140, 0.3)
    assert (in_sync.confirmed, in_sync.names) == (130, ["a"])


def test_one_without_all_tables_does_not_join() -> None:
    in_sync = InSyncSet(LAG_S, 100)
    in_sync.acknowledged("a", 100, 100, 0.0)
    assert in_sync.look(100, 0.1, may_join=()) == ([], [])
    assert in_sync.look(100, 0.2, may_join={"a"}) == (["a"], [])


def test_one_that_has_never_caught_up_does_not_join() -> None:
    in_sync = InSyncSet(LAG_S, 1000)
    for offset in range(0, 900, 100):
        in_sync.acknowledged("a", offset, 1000 + offset, offset / 100)
        assert in_sync.look(1000 + offset, offset / 100) == ([], [])


def test_at_most_one_joins_at_a_look() -> None:
    in_sync = InSyncSet(LAG_S, 100)
    for name in "ab":
        in_sync.acknowledged(name, 100, 100, 0.0)
    assert [in_sync.look(100, at)[0] for at in (0.0, 1.0, 2.0)] == [["a"], ["b"], []]


def test_a_slave_that_does_not_catch_up_leaves_and_what_waited_for_it_is_confirmed() -> None:
    in_sync = joined("a", "b")
    for second in (1.0, 2.0):
        in_sync.acknowledged("a", 200, 200, second)
        assert in_sync.look(200, second) == ([], [])
    in_sync.acknowledged("a", 200, 200, 3.0)
    assert in_sync.look(200, 3.0) == ([], ["b"])
    assert (in_sync.confirmed, in_sync.names) == (200, ["a"])


def test_while_nothing_comes_a_slave_that_takes_over_states_stays() -> None:
    in_sync = joined("a")
    for second in range(1, 20):
        in_sync.heard("a", float(second))
        assert in_sync.look(100, float(second)) == ([], [])


def test_while_nothing_comes_a_slave_that_is_silent_leaves_until_it_is_heard_again() -> None:
    in_sync = joined("a")
    looks = [in_sync.look(100, float(second)) for second in range(1, 9)]
    assert looks == [([], [])] * 2 + [([], ["a"])] + [([], [])] * 5
    in_sync.heard("a", 9.0)
    assert in_sync.look(100, 9.0) == (["a"], [])


def test_a_slave_that_connects_anew_at_once_stays_and_one_that_is_gone_leaves() -> None:
    in_sync = joined("a", "b")
    in_sync.look(100, 1.0)
    in_sync.gone("a", 1.0)
    in_sync.gone("b", 1.0)
    in_sync.acknowledged("a", 100, 100, 1.0 + GONE_S / 2)
    assert in_sync.look(100, 1.0 + GONE_S) == ([], ["b"])
    assert in_sync.names == ["a"]


def test_while_this_process_stands_still_no_slave_leaves() -> None:
    in_sync = joined("a")
    in_sync.acknowledged("a", 100, 200, 0.5)
    assert in_sync.look(200, 1.0) == ([], [])
    assert in_sync.look(200, 61.0) == ([], []), "a minute in which nothing was heard counts as a second"
    assert LOOK_S_MAX < LAG_S


def test_those_on_record_are_required_at_once_and_in_sync_when_they_have_all() -> None:
    in_sync = InSyncSet(LAG_S, 100, on_record=["a", "b"], now=5.0)
    in_sync.acknowledged("a", 90, 150, 5.1)
    assert (in_sync.required, in_sync.names, in_sync.confirmed) == (["a", "b"], [], 100)
    in_sync.acknowledged("a", 150, 150, 5.2)
    assert (in_sync.names, in_sync.confirmed) == (["a"], 100), "which b has not said that it has"
    assert in_sync.look(150, 5.0 + GONE_S) == ([], ["b"])
    assert (in_sync.required, in_sync.confirmed) == (["a"], 150)


def test_what_a_master_had_alone_when_it_was_killed_is_not_confirmed_by_its_restart() -> None:
    """Or it could not follow a slave of that set which was promoted meanwhile, and lacks it."""
    in_sync = InSyncSet(LAG_S, 100, on_record=["a"], now=0.0, confirmed=60)
    assert in_sync.confirmed == 60 and not in_sync.names
    in_sync.acknowledged("a", 100, 100, 0.5)
    assert in_sync.confirmed == 100 and in_sync.names == ["a"]


def test_who_is_still_on_record_does_not_leave() -> None:
    in_sync = joined("a", "b")
    in_sync.look(100, 1.0)
    for name in "ab":
        in_sync.gone(name, 1.0)
    assert in_sync.leaving(200, 2.0) == ["a", "b"]
    assert in_sync.look(200, 2.0, may_leave=["b"]) == ([], ["b"])
    assert (in_sync.names, in_sync.confirmed) == (["a"], 100)
    assert in_sync.look(200, 2.1, may_leave=[]) == ([], [])
    assert in_sync.look(200, 2.2) == ([], ["a"])
    assert in_sync.confirmed == 200


def record_of(folder: Path) -> InSyncRecord:
    file = InSyncFile(folder)
    file.load()
    return file.record


async def test_the_set_is_on_record_at_both_and_counts_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        master, folder = cluster.broker, cluster.broker.store_config.root
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await send(cluster, 3)
            await until(lambda: record_of(folder).names == (slave.address,))
            sink = follower_of(slave).sink
            await until(lambda: sink.in_sync.confirmed == master.store.max_physical_offset)
            await until(lambda: record_of(tmp_path / "slave").names == (slave.address,))
            name = slave.address
        assert record_of(tmp_path / "slave").confirmed == master.store.max_physical_offset, "what it was told last"
        await until(lambda: record_of(folder).names == ())
        InSyncFile(folder).keep(InSyncRecord(1, (name,), 0))  # as if both had been lost at once
    caplog.clear()

    def who_left() -> list[str]:
        changes = (vars(each) for each in caplog.records if getattr(each, "event", "") == "in_sync_changed")
        return [each for change in changes for each in change["left"]]

    async with serving(tmp_path, broker=MASTER, store=STORE):
        await until(lambda: who_left() == [name])  # it was required until it did not come
        assert record_of(folder).names == ()


async def test_a_slave_stays_while_the_set_can_not_be_put_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        slaves = cluster.broker.slaves
        async with slave_of(cluster, tmp_path / "slave"):
            await until(lambda: record_of(cluster.broker.store_config.root).names != ())
            tried: list[InSyncRecord] = []

            def refuse(_file: InSyncFile, record: InSyncRecord) -> None:
                tried.append(record)
                raise StateFileError(tmp_path, "no space")

            monkeypatch.setattr(InSyncFile, "keep", refuse)
        await until(lambda: len(tried) > 1)
        assert slaves.in_sync is not None and slaves.in_sync.has_required
        monkeypatch.undo()
        await until(lambda: slaves.in_sync is not None and not slaves.in_sync.has_required)


async def max_offset(peer: Peer) -> int:
    answer = await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
    return int(answer.ext_fields["offset"])


async def offset_at(peer: Peer, timestamp_ms: int) -> int:
    fields = {"topic": TOPIC, "queueId": "0", "timestamp": str(timestamp_ms)}
    answer = await peer.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)
    return int(answer.ext_fields["offset"])


async def looked_up(peer: Peer, physical_offset: int) -> tuple[int, int]:
    """The codes of look-ups by key and by place."""
    fields = {"topic": TOPIC, "key": "held", "maxNum": "8", "beginTimestamp": "0", "endTimestamp": str(1 << 62)}
    by_key = await peer.ask(RequestCode.QUERY_MESSAGE, fields)
    by_place = await peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(physical_offset)})
    return by_key.code, by_place.code


@pytest.mark.parametrize("fast", [True, False])
async def test_consumers_and_producers_wait_for_the_slave_that_is_in_sync(tmp_path: Path, fast: bool) -> None:
    async with serving(tmp_path, broker=GATED | {"fast_path_enable": fast}, store=STORE) as cluster:
        master = cluster.broker
        async with (
            CuttingProxy(master.slaves.port) as proxy,
            slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address) as slave,
            connected(master.port) as producer,
            connected(master.port) as consumer,
        ):
            await until(lambda: follower_of(slave).ha_client.is_copying)
            await until(lambda: master.slaves.in_sync is not None and bool(master.slaves.in_sync.names))
            await send(cluster, 2)
            assert await max_offset(consumer) == 2
            proxy.from_slave.clear()
            place, fields = master.store.max_physical_offset, send_fields("G", TOPIC, 0, "KEYS\x01held")
            producer.write(RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, fields).encode())
            await caught_up(slave, master)
            await until(lambda: master.store.max_offset(TOPIC, 0) == 3)
            assert await max_offset(consumer) == 2, "the slave has it, and the master does not know"
            assert await offset_at(consumer, FAR_AHEAD_MS) == 1, "that of the last message that is shown"
            assert await looked_up(consumer, place) == (ResponseCode.QUERY_NOT_FOUND, ResponseCode.SYSTEM_ERROR)
            now = await consumer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "2", "sysFlag": "4"})
            assert now.code == ResponseCode.PULL_NOT_FOUND
            some = await consumer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "0", "sysFlag": "4"})
            assert (some.code, some.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "2")
            waits = asyncio.ensure_future(consumer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "2"}))
            await until(lambda: master.hold.held_count == 1)
            proxy.from_slave.set()
            found = await waits
            assert (found.code, found.ext_fields["nextBeginOffset"]) == (ResponseCode.SUCCESS, "3")
            assert (await producer.read()).code == ResponseCode.SUCCESS
            assert await max_offset(consumer) == 3
            assert await offset_at(consumer, FAR_AHEAD_MS) == 2
            assert await looked_up(consumer, place) == (ResponseCode.SUCCESS, ResponseCode.SUCCESS)


@pytest.mark.parametrize("fast", [True, False])
async def test_messages_are_refused_while_too_few_brokers_are_in_sync(tmp_path: Path, fast: bool) -> None:
    settings = GATED | {"min_in_sync_replicas": 2, "read_confirmed_only": False, "fast_path_enable": fast}
    async with serving(tmp_path, broker=settings, store=STORE) as cluster, connected(cluster.broker.port) as producer:

        async def sent() -> RemotingCommand:
            return await producer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"body")

        async def is_refused() -> bool:
            return (await sent()).code == ResponseCode.SERVICE_NOT_AVAILABLE

        refused = await sent()
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "1 in sync, the master counted, minInSyncReplicas=2" in (refused.remark or "")
        assert cluster.broker.store.max_physical_offset == 0, "refused before it is stored"
        async with slave_of(cluster, tmp_path / "slave"):
            await until(lambda: cluster.broker.store.is_writeable)
            assert (await sent()).code == ResponseCode.SUCCESS
        await until(lambda: not cluster.broker.slaves.slaves)
        await until(is_refused)  # once it has left the set
        end = cluster.broker.store.max_physical_offset
        assert await is_refused()
        assert cluster.broker.store.max_physical_offset == end


def test_when_the_last_slave_has_left_consumers_see_nothing_new() -> None:
    in_sync = InSyncSet(LAG_S, 100)
    assert in_sync.shown is None, "there has never been a set"
    in_sync = joined("a", "b")
    in_sync.acknowledged("a", 150, 200, 1.0)
    in_sync.acknowledged("b", 160, 200, 1.0)
    assert in_sync.shown == 150
    for name in ("a", "b"):
        in_sync.gone(name, 1.0)
    in_sync.look(300, 1.0)
    in_sync.look(300, 1.0 + GONE_S)
    assert (in_sync.confirmed, in_sync.has_required, in_sync.shown) == (300, False, 150)
    in_sync.acknowledged("a", 300, 300, 5.0)
    in_sync.look(310, 5.0)
    assert (in_sync.shown, in_sync.required) == (300, ["a"])


def test_a_set_on_record_limits_what_is_shown_after_a_restart() -> None:
    in_sync = InSyncSet(LAG_S, 300, on_record=["a"], shown=150)
    in_sync.look(300, 0.0)
    assert in_sync.shown == 150
    in_sync.acknowledged("a", 280, 300, 0.5)
    assert in_sync.shown == 280


@pytest.mark.parametrize("fast", [True, False])
async def test_an_empty_set_shows_nothing_new_also_after_a_restart(tmp_path: Path, fast: bool) -> None:
    settings = MASTER | {"read_confirmed_only": True, "fast_path_enable": fast}
    async with serving(tmp_path, broker=settings, store=STORE) as cluster:
        master, folder = cluster.broker, cluster.broker.store_config.root
        await send(cluster, 2)
        async with slave_of(cluster, tmp_path / "slave") as slave, connected(master.port) as consumer:
            assert await max_offset(consumer) == 2, "there has never been a set"
            await until(lambda: record_of(folder).names == (slave.address,))
            await send(cluster, 1)
            await until(lambda: master.slaves.behind_bytes == 0)
            assert await max_offset(consumer) == 3
        await until(lambda: record_of(folder).names == ())
        await send(cluster, 4, b"may be cut %d")
        async with connected(master.port) as consumer:
            assert await max_offset(consumer) == 3
            ahead = await consumer.ask(RequestCode.PULL_MESSAGE, PULL | {"queueOffset": "5", "sysFlag": "4"})
            assert ahead.code == ResponseCode.PULL_NOT_FOUND, "and it is not sent back"
        assert record_of(folder).shown >= 0
    async with serving(tmp_path, broker=settings, store=STORE) as cluster, connected(cluster.broker.port) as consumer:
        assert await max_offset(consumer) == 3
        off = await consumer.ask(
            RequestCode.UPDATE_BROKER_CONFIG, {}, b"readConfirmedOnly=false\n"
        )  # a person's decision
        assert off.code == ResponseCode.SUCCESS, off.remark
        await until(lambda: cluster.broker.store.shown_below > cluster.broker.store.max_physical_offset)
        assert await max_offset(consumer) == 7
        await consumer.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, b"readConfirmedOnly=true\n")
        async with slave_of(cluster, tmp_path / "slave"):
            await until(lambda: bool(record_of(folder).names))
            await send(cluster, 1)

            async def all_shown() -> bool:
                return await max_offset(consumer) == 8

            await until(all_shown)
