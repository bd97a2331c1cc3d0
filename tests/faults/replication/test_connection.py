"""What may happen on the way between master and slave: cuts at every byte, loss, delay; and a slave's full disk.

pytest tests/faults/replication/test_connection.py --rounds 100
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.replication import ha_client
from appliance.broker.replication.ha_client import HaState
from appliance.broker.replication.slave_synchronize import SlaveSynchronize
from gantrymq import AdminClient
from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from tests.appliance.broker.replication import pair
from tests.appliance.broker.replication.brokers import group, is_master, is_slave, promote, same_logs
from tests.appliance.broker.replication.brokers import send as send_to
from tests.faults.kit.small_disk import small_disk
from tests.harness import serving
from tests.waiting import until

CUTS = 40  # usual; with --rounds each byte of the first so many hundred
STEP = 61  # no divisor of a frame's sizes
SAID_STEP = 27  # of a slave: its greeting, and 16 or 8 bytes for each place
SAID_CUTS = 20
DELAY_S = 0.1
QUICK: dict[str, Any] = {"ha_housekeeping_ms": 1000}


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ha_client, "RETRY_S_MIN", 0.001)
    monkeypatch.setattr(ha_client, "RETRY_S_MAX", 0.002)


async def knows_no_epochs(_self: SlaveSynchronize) -> int:
    return 0


@pytest.mark.usefixtures("quick_retries")
@pytest.mark.parametrize("protocol", ["ours", "RocketMQ's"])
@pytest.mark.parametrize("cuts", ["what the master sends", "what the slave says"])
async def test_frames_may_be_cut_at_every_byte(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, protocol: str, cuts: str
) -> None:
    """Greeting, heads, pieces of records and states: each connection ends a little later than the one before."""
    if protocol != "ours":
        monkeypatch.setattr(SlaveSynchronize, "epoch", knows_no_epochs)  # so it takes its master for one of RocketMQ's
    rounds = request.config.getoption("--rounds", default=None)
    says_little = cuts == "what the slave says"
    if rounds:
        ends = list(range(1, SAID_CUTS * SAID_STEP if says_little else 100 * rounds))
    else:
        ends = list(range(1, SAID_CUTS * SAID_STEP, SAID_STEP) if says_little else range(1, CUTS * STEP, STEP))
    async with (
        serving(tmp_path, broker=pair.MASTER | {"ha_transfer_batch_bytes": 512}, store=pair.STORE) as cluster,
        pair.CuttingProxy(cluster.broker.slaves.port) as proxy,
    ):
        await pair.send(cluster, 30, b"%d" * 300)
        proxy.cut_after, proxy.cuts_what_slaves_say = list(ends), says_little
        heartbeat: dict[str, Any] = {"ha_heartbeat_ms": 1} if says_little else {}  # so a place is said soon
        async with pair.slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address, **heartbeat) as slave:
            for number in range(len(ends)):
                await until(lambda number=number: proxy.cuts > number)  # type: ignore[misc]
            await pair.send(cluster, 3)
            await pair.caught_up(slave, cluster.broker)
            assert pair.log_of(slave) == pair.log_of(cluster.broker)
            await until(lambda: pair.follower_of(slave).ha_client.is_copying and bool(cluster.broker.slaves.slaves))
            assert all((each.epoch is None) == (protocol != "ours") for each in cluster.broker.slaves.slaves)


async def test_what_is_long_on_its_way_arrives_and_no_side_is_given_up(tmp_path: Path) -> None:
    patient = {"ha_housekeeping_ms": 3_600_000}
    settings = pair.MASTER | patient | {"broker_role": "SYNC_MASTER", "slave_timeout_ms": 600_000}
    async with (
        serving(tmp_path, broker=settings, store=pair.STORE) as cluster,
        pair.CuttingProxy(cluster.broker.slaves.port) as proxy,
        pair.slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address, **patient) as slave,
    ):
        await until(lambda: cluster.broker.slaves.behind_bytes is not None)
        [known] = cluster.broker.slaves.slaves
        proxy.delay_s = DELAY_S
        began = time.monotonic()
        await pair.send(cluster, 3)  # each is answered once the slave has it
        assert time.monotonic() - began >= 3 * 2 * DELAY_S
        assert pair.log_of(slave) == pair.log_of(cluster.broker)
        assert cluster.broker.slaves.slaves == {known}, "one connection all the time"


@pytest.mark.usefixtures("quick_retries")
async def test_after_one_way_loss_both_sides_find_each_other_again(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, broker=pair.MASTER | QUICK, store=pair.STORE) as cluster,
        pair.CuttingProxy(cluster.broker.slaves.port) as proxy,
        pair.slave_of(cluster, tmp_path / "slave", ha_master_address=proxy.address, **QUICK) as slave,
    ):
        client = pair.follower_of(slave).ha_client
        await pair.send(cluster, 5)
        await pair.caught_up(slave, cluster.broker)
        for lost in (proxy.from_slave, proxy.from_master):
            await until(lambda: client.is_copying)
            lost.clear()
            await pair.send(cluster, 5)  # an ASYNC_MASTER's producers don't notice
            await until(lambda: client.state is HaState.CONNECTING)
            await until(lambda: all(each.acknowledged < 0 for each in cluster.broker.slaves.slaves))
            lost.set()
            await pair.caught_up(slave, cluster.broker)
        assert pair.log_of(slave) == pair.log_of(cluster.broker)
        assert slave.store.max_offset("Copied", 0) == 15


@pytest.mark.usefixtures("quick_retries")
async def test_a_slave_with_a_full_disk_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        async with (
            serving(tmp_path, broker=pair.MASTER, store=pair.STORE) as cluster,
            pair.slave_of(cluster, disk.path / "slave", store={"index_enable": False}) as slave,
        ):
            await pair.send(cluster, 5)
            await pair.caught_up(slave, cluster.broker)
            disk.leave(0)
            client, count = pair.follower_of(slave).ha_client, 5
            while cluster.broker.store.max_physical_offset < 4 * pair.FILE_BYTES:  # the slave has one or two
                await pair.send(cluster, 40, b"%d" * 10_000)
                count += 40
            await until(lambda: client.state is HaState.NO_ROOM)
            await pair.send(cluster, 5)  # the master goes on
            disk.empty()
            await pair.caught_up(slave, cluster.broker)
            assert pair.log_of(slave) == pair.log_of(cluster.broker)
            assert slave.store.max_offset("Copied", 0) == count + 5


async def test_what_an_async_master_loses_is_the_difference_that_was_shown(tmp_path: Path) -> None:
    """A partition: the master is alone with its producers, and neither slave nor name server hears of it. What it had
    acknowledged alone is cut when a person has decided so."""
    async with (
        group(tmp_path) as brokers,
        pair.CuttingProxy(brokers.namesrv_port) as to_names,
        brokers.broker("one", namesrv_addresses=to_names.address) as one,
        pair.CuttingProxy(one.controller.slaves.port) as proxy,
        brokers.broker("two", broker_id=1, ha_master_address=proxy.address) as two,
    ):
        await send_to(one, 20)
        await same_logs(one, two)
        await until(lambda: one.controller.slaves.behind_bytes == 0)  # and the master has heard so
        copied = one.controller.store.max_physical_offset
        ways = (proxy.from_master, proxy.from_slave, to_names.from_master, to_names.from_slave)
        for way in ways:
            way.clear()
        await send_to(one, 9, b"lost %d ")
        [slave] = one.controller.slaves.slaves
        shown = one.controller.slaves.lacks(slave)
        answer = await promote(two, force="true")  # the master is there, and out of reach
        assert answer.code == 0, answer.remark
        await until(lambda: is_master(two))
        await send_to(two, 4)
        assert is_master(one) and two.controller.standing.standing.epochs.current == 2, "two masters, and two epochs"
        for way in ways:
            way.set()
        await until(lambda: is_slave(one) and pair.follower_of(one.controller).ha_client.state is HaState.CONFIRMED)
        async with AdminClient(brokers.namesrv_address) as admin:
            await admin.succession.settle("broker-a", f"127.0.0.1:{two.port}")
        await same_logs(one, two)
        assert pair.log_of(one.controller) == pair.log_of(two.controller)
        assert two.controller.standing.standing.epochs.history[-1].start == copied
    [kept] = tmp_path.glob("one/store.cut-*")
    with StoreFolder(kept) as folder:
        rows = [row for row in dump_records(folder, Selection(), with_body=True) if "body" in row]
    assert [row["body"] for row in rows] == [f"lost {number} " for number in range(9)]
    assert sum(int(row["storeSize"]) for row in rows) == shown
