"""A slave of ours behind a master of ours: the same log, from where it was; other logs are found and left alone."""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from appliance.broker import open_parts
from appliance.broker.controller import BrokerController
from appliance.broker.replication import ha_client
from appliance.broker.replication.ha_client import LASTING, HaState, next_retry_s
from appliance.broker.replication.master_address import MasterAddress
from appliance.broker.replication.slave_synchronize import SlaveSynchronize
from appliance.errors import StartError
from appliance.settings.roles import BrokerConfig
from store.base.config import MessageStoreConfig
from tests.appliance.broker.replication.pair import (
    FILE_BYTES,
    MASTER,
    STORE,
    TOPIC,
    CuttingProxy,
    caught_up,
    follower_of,
    log_of,
    send,
    slave_of,
)
from tests.harness import SMALL_STORE, serving
from tests.waiting import until


async def test_a_slave_copies_what_comes_over_the_ends_of_files(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        await send(cluster, 30)
        await caught_up(slave, cluster.broker)
        await send(cluster, 60, b"%d" * 20_000)
        assert cluster.broker.store.max_physical_offset > 2 * FILE_BYTES
        await caught_up(slave, cluster.broker)
        assert log_of(slave) == log_of(cluster.broker)
        assert slave.store.max_offset(TOPIC, 0) == cluster.broker.store.max_offset(TOPIC, 0) == 90
        await until(lambda: cluster.broker.slaves.behind_bytes == 0)
        assert follower_of(slave).ha_client.is_copying


async def test_a_connection_may_be_cut_at_any_byte(tmp_path: Path) -> None:
    dice = random.Random(5)
    async with (
        serving(tmp_path, broker=MASTER | {"ha_transfer_batch_bytes": 1024}, store=STORE) as cluster,
        CuttingProxy(cluster.broker.slaves.port) as proxy,
    ):
        await send(cluster, 100, b"%d" * 700)
        cuts = [1, 11, 12, 13] + [dice.randrange(20_000) for _ in range(10)]
        proxy.cut_after = list(cuts)
        async with slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address) as slave:
            await caught_up(slave, cluster.broker)
            assert log_of(slave) == log_of(cluster.broker)
            assert slave.store.max_offset(TOPIC, 0) == 100
            assert proxy.cuts >= 5


async def test_an_empty_slave_begins_with_the_masters_last_file_and_a_restarted_one_where_it_was(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        await send(cluster, 60, b"%d" * 20_000)
        end = cluster.broker.store.max_physical_offset
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await caught_up(slave, cluster.broker)
            first = slave.store.min_physical_offset
            assert first == end - end % FILE_BYTES > 0
            assert log_of(slave) == log_of(cluster.broker)[first:]
        await send(cluster, 30, b"%d" * 20_000)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            await caught_up(slave, cluster.broker)
            assert slave.store.min_physical_offset == first
            assert log_of(slave) == log_of(cluster.broker)[first:]
            assert slave.store.max_offset(TOPIC, 0) == 90


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> list[MasterAddress]:
    """Where slaves look for their masters."""
    found: list[MasterAddress] = []

    class Kept(MasterAddress):
        def __init__(self, own_address: str, fixed_ha: str = "") -> None:
            super().__init__(own_address, fixed_ha)
            found.append(self)

    monkeypatch.setattr(open_parts, "MasterAddress", Kept)
    return found


async def test_a_slave_leaves_a_connection_that_stands_when_the_master_is_elsewhere(
    tmp_path: Path, addresses: list[MasterAddress]
) -> None:
    """A machine that was lost closes none, and its successor confirms nothing without this slave."""
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        await send(cluster, 5)
        await caught_up(slave, cluster.broker)
        client = follower_of(slave).ha_client
        before = client.own_address
        addresses[-1].on_record(cluster.broker.address, f"localhost:{cluster.broker.slaves.port}")
        await until(lambda: client.own_address not in ("", before))
        await send(cluster, 5)
        await caught_up(slave, cluster.broker)


async def test_the_pauses_grow_while_the_master_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def noted(state: HaState, before_s: float) -> float:
        pauses.append(next_retry_s(state, before_s))
        return pauses[-1]

    monkeypatch.setattr(ha_client, "RETRY_S_MIN", 0.001)
    monkeypatch.setattr(ha_client, "RETRY_S_MAX", 0.005)
    monkeypatch.setattr(ha_client, "next_retry_s", noted)
    async with (
        serving(tmp_path, broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave", ha_master_address="127.0.0.1:1"),
    ):
        await until(lambda: pauses.count(0.005) > 1)
    assert set(pauses) == {0.001, 0.002, 0.004, 0.005}


def test_a_master_that_may_be_opening_is_tried_again_within_a_second() -> None:
    """Where a message has to be in two brokers, it takes none before its slave is back."""
    for state in (HaState.CONNECTING, HaState.OLD_MASTER):
        pauses = [0.0]
        while len(pauses) < 6:
            pauses.append(next_retry_s(state, pauses[-1]))
        assert pauses == [0.0, 0.2, 0.4, 0.8, 1.0, 1.0]
        assert next_retry_s(state, next_retry_s(HaState.DIVERGED, 0.0)) == 1.0


@pytest.mark.parametrize(("states", "seconds"), [(LASTING, 5.0), ([HaState.DIVERGED], 30.0)])
def test_what_does_not_pass_soon_is_tried_again_later(states: Iterable[HaState], seconds: float) -> None:
    assert {next_retry_s(state, before_s) for state in states for before_s in (0.0, 1.0, 30.0)} == {seconds}


async def test_a_slave_whose_old_master_does_not_answer_follows_the_new_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: list[MasterAddress]
) -> None:
    """It may be waiting for that answer when the register has another master."""
    asked: list[str] = []
    epoch = SlaveSynchronize.epoch

    async def never_at_first(synchronize: SlaveSynchronize) -> int | None:
        asked.append("epoch")
        if len(asked) == 1:
            await asyncio.Event().wait()
        return await epoch(synchronize)

    monkeypatch.setattr(SlaveSynchronize, "epoch", never_at_first)
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        await send(cluster, 5)
        await until(lambda: bool(asked))
        addresses[-1].on_record(cluster.broker.address, f"localhost:{cluster.broker.slaves.port}")
        await caught_up(slave, cluster.broker)


async def test_a_slave_that_may_be_about_to_become_the_master_cuts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster, slave_of(cluster, tmp_path / "slave") as slave:
        client = follower_of(slave).ha_client

        def paused_meanwhile(*_: object, **__: object) -> int:
            client.pause()
            return 0

        monkeypatch.setattr(ha_client, "where_to_cut", paused_meanwhile)
        await until(lambda: "about to become the master" in client.why)
        assert slave.turns.turn is None


async def test_a_slave_that_starts_before_its_master_finds_it(tmp_path: Path) -> None:
    async with (
        serving(tmp_path / "elsewhere", broker={"broker_name": "other"}) as cluster,
        slave_of(cluster, tmp_path / "slave", broker_name="late") as slave,
    ):
        assert follower_of(slave).ha_client.state is HaState.NO_MASTER


@pytest.mark.parametrize(
    ("knows_epochs", "why"), [(True, "no epoch in common"), (False, "other bytes")], ids=["gantry", "rocketmq"]
)
async def test_another_log_is_found_at_the_joint_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows_epochs: bool, why: str
) -> None:
    """RocketMQ's masters know no epochs: the bytes at the joint tell."""

    async def knows_no_epochs(_self: SlaveSynchronize) -> int:
        return 0

    if not knows_epochs:
        monkeypatch.setattr(SlaveSynchronize, "epoch", knows_no_epochs)
    async with (
        serving(tmp_path / "one", broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave") as slave,
    ):
        await send(cluster, 20)
        await caught_up(slave, cluster.broker)
    async with serving(tmp_path / "two", broker=MASTER, store=STORE) as cluster:
        await send(cluster, 40)
        async with slave_of(cluster, tmp_path / "slave") as slave:
            before, client = log_of(slave), follower_of(slave).ha_client
            await until(lambda: client.state is HaState.DIVERGED)
            assert why in client.why
            await send(cluster, 1)
            assert (log_of(slave), client.received_bytes) == (before, 0), "nothing was taken, nothing was lost"


async def test_a_master_that_lost_its_end_is_not_followed_until_it_has_it_again(tmp_path: Path) -> None:
    async with serving(tmp_path / "one", broker=MASTER, store=STORE) as cluster:
        await send(cluster, 20)
    shutil.copytree(tmp_path / "one", tmp_path / "older")
    async with (
        serving(tmp_path / "one", broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave") as slave,
    ):
        await send(cluster, 20)
        await caught_up(slave, cluster.broker)
    async with (
        serving(tmp_path / "older", broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave") as slave,
    ):
        before, client = log_of(slave), follower_of(slave).ha_client
        await until(lambda: client.state is HaState.AHEAD)
        assert str(slave.store.max_physical_offset) in client.why
        await send(cluster, 20)
        await until(lambda: client.state is HaState.DIVERGED)
        assert "other bytes" in client.why
        assert log_of(slave) == before


async def test_a_copy_is_not_opened_as_a_masters_store(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, broker=MASTER, store=STORE) as cluster,
        slave_of(cluster, tmp_path / "slave" / "store") as slave,
    ):
        await send(cluster, 5)
        await caught_up(slave, cluster.broker)
    config = BrokerConfig(listen_port=0)
    store_config = MessageStoreConfig(root=tmp_path / "slave" / "store", **{**SMALL_STORE, **STORE})
    with pytest.raises(StartError, match="a slave's copy of broker-a"):
        await BrokerController(config, store_config).__aenter__()
    config = BrokerConfig(listen_port=0, broker_role="SLAVE", broker_id=1, broker_name="broker-b")
    with pytest.raises(StartError, match="a copy of broker-a, not of broker-b"):
        await BrokerController(config, store_config).__aenter__()


async def test_files_of_another_size_are_told(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        await send(cluster, 60, b"%d" * 20_000)
        other = {"commit_log_file_bytes": FILE_BYTES * 4}
        async with slave_of(cluster, tmp_path / "slave", store=other) as slave:
            client = follower_of(slave).ha_client
            await until(lambda: client.state is HaState.DIVERGED)
            assert "mappedFileSizeCommitLog" in client.why


async def test_a_silent_master_is_left(tmp_path: Path) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        silent = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with (
            server,
            slave_of(cluster, tmp_path / "slave", ha_master_address=silent, ha_housekeeping_ms=1000) as slave,
        ):
            client = follower_of(slave).ha_client
            await until(lambda: "no greeting within 1 s" in client.why)
