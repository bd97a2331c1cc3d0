"""What may happen on the way between master and slave: cuts at every byte, one-way loss; and a slave's full disk.

pytest tests/faults/replication/test_connection.py --rounds 100
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.broker.replication import ha_client
from appliance.broker.replication.ha_client import HaState
from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from tests.appliance.broker.replication.brokers import group, is_master, is_slave, promote, same_logs
from tests.appliance.broker.replication.brokers import send as send_to
from tests.appliance.broker.replication.pair import (
    FILE_BYTES,
    MASTER,
    STORE,
    CuttingProxy,
    caught_up,
    follower_of,
    log_of,
    send,
    slave_of,
)
from tests.faults.kit.small_disk import small_disk
from tests.harness import serving
from tests.waiting import until

CUTS = 40  # usual; with --rounds each byte of the first so many hundred
STEP = 61  # no divisor of a frame's sizes
QUICK: dict[str, Any] = {"ha_housekeeping_ms": 1000}


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ha_client, "RETRY_S_MIN", 0.001)
    monkeypatch.setattr(ha_client, "RETRY_S_MAX", 0.002)


@pytest.mark.usefixtures("quick_retries")
async def test_our_own_frames_may_be_cut_at_every_byte(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Greeting, heads, pieces of records and states: each connection ends a little later than the one before."""
    rounds = request.config.getoption("--rounds", default=None)
    cuts = list(range(1, 100 * rounds)) if rounds else [number * STEP for number in range(1, CUTS)]
    async with (
        serving(tmp_path, broker=MASTER | {"ha_transfer_batch_bytes": 512}, store=STORE) as cluster,
        CuttingProxy(cluster.broker.slaves.port) as proxy,
    ):
        await send(cluster, 30, b"%d" * 300)
        proxy.cut_after = list(cuts)
        async with slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address) as slave:
            for number in range(len(cuts)):
                await until(lambda number=number: proxy.cuts > number)  # type: ignore[misc]
            await send(cluster, 3)
            await caught_up(slave, cluster.broker)
            assert log_of(slave) == log_of(cluster.broker)
            assert cluster.broker.slaves.slaves and follower_of(slave).ha_client.is_copying


@pytest.mark.usefixtures("quick_retries")
async def test_after_one_way_loss_both_sides_find_each_other_again(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, broker=MASTER | QUICK, store=STORE) as cluster,
        CuttingProxy(cluster.broker.slaves.port) as proxy,
        slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address, **QUICK) as slave,
    ):
        client = follower_of(slave).ha_client
        await send(cluster, 5)
        await caught_up(slave, cluster.broker)
        for lost in (proxy.from_slave, proxy.from_master):
            await until(lambda: client.is_copying)
            lost.clear()
            await send(cluster, 5)  # an ASYNC_MASTER's producers don't notice
            await until(lambda: client.state is HaState.CONNECTING)
            await until(lambda: all(each.acknowledged < 0 for each in cluster.broker.slaves.slaves))
            lost.set()
            await caught_up(slave, cluster.broker)
        assert log_of(slave) == log_of(cluster.broker)
        assert slave.store.max_offset("Copied", 0) == 15


@pytest.mark.usefixtures("quick_retries")
async def test_a_slave_with_a_full_disk_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        async with (
            serving(tmp_path, broker=MASTER, store=STORE) as cluster,
            slave_of(cluster, disk.path / "slave", store={"index_enable": False}) as slave,
        ):
            await send(cluster, 5)
            await caught_up(slave, cluster.broker)
            disk.leave(0)
            client, count = follower_of(slave).ha_client, 5
            while cluster.broker.store.max_physical_offset < 4 * FILE_BYTES:  # the slave has one or two
                await send(cluster, 40, b"%d" * 10_000)
                count += 40
            await until(lambda: client.state is HaState.NO_ROOM)
            await send(cluster, 5)  # the master goes on
            disk.empty()
            await caught_up(slave, cluster.broker)
            assert log_of(slave) == log_of(cluster.broker)
            assert slave.store.max_offset("Copied", 0) == count + 5


async def test_what_an_async_master_loses_is_the_difference_that_was_shown(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers:
        async with (
            brokers.broker("one") as one,
            CuttingProxy(one.controller.slaves.port) as proxy,
            brokers.broker("two", broker_id=1, ha_master_address=proxy.address) as two,
        ):
            await send_to(one, 20)
            await same_logs(one, two)
            copied = one.controller.store.max_physical_offset
            proxy.from_master.clear()
            await send_to(one, 9, b"lost %d ")
            [slave] = one.controller.slaves.slaves
            shown = one.controller.slaves.lacks(slave)
            answer = await promote(two, force="true")  # the master is there, and nobody asks it
            assert answer.code == 0, answer.remark
            await until(lambda: is_master(two))
            await until(lambda: is_slave(one))
            proxy.from_master.set()
            await same_logs(one, two)
            assert two.controller.store.max_physical_offset == copied
        [kept] = tmp_path.glob("one/store.cut-*")
        with StoreFolder(kept) as folder:
            rows = [row for row in dump_records(folder, Selection(), with_body=True) if "body" in row]
        assert [row["body"] for row in rows] == [f"lost {number} " for number in range(9)]
        assert sum(int(row["storeSize"]) for row in rows) == shown
