"""Two promotions apart from each other begin one epoch twice: neither log is cut, followed or written until a person
has chosen; and nothing that was confirmed is cut without one.
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path

import pytest

from appliance.broker.replication.ha_client import HaState
from tests.appliance.broker.replication.brokers import copied_pair, group, is_master, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import follower_of, log_of
from tests.appliance.broker.replication.rivals.parted import has_rival, part, refuses_sends
from tests.appliance.cli.running_gantry import gantry_admin, run_gantry
from tests.waiting import until


async def test_an_epoch_that_was_begun_twice_is_served_by_nobody_until_a_person_chooses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with group(tmp_path) as brokers:
        admin = functools.partial(gantry_admin, capsys, brokers.namesrv_address)
        await part(brokers, tmp_path)
        async with brokers.broker("two", broker_id=1) as two, brokers.broker("three", broker_id=2) as three:
            await until(lambda: has_rival(two) and has_rival(three))
            ends = [each.controller.store.max_physical_offset for each in (two, three)]
            assert await refuses_sends(two) and await refuses_sends(three)
            shown = await admin("cluster")
            assert "epoch 2 was begun twice" in shown.out
            for each in (two, three):
                assert each.controller.standing.standing.epochs.current_id in shown.out
            async with brokers.broker("one") as one:  # which follows neither
                await until(lambda: is_slave(one))
                await asyncio.sleep(1)  # for what must not come
                assert one.controller.standing.standing.epochs.current == 1
                assert [each.controller.store.max_physical_offset for each in (two, three)] == ends
                kept = three.controller.address
                done = await admin("settle", "broker-a", "--keep", kept, "--yes")
                assert done.code == 0, done.err
                await until(lambda: is_master(three) and is_slave(two))
                await same_logs(two, three)
                await same_logs(one, three)
                assert log_of(two.controller) == log_of(three.controller) == log_of(one.controller)
                await send(three, 1)
        assert three.controller.standing.standing.epochs.current == 3
        assert len(list(tmp_path.glob("two/store.cut-*"))) == 1


async def test_a_contested_master_stays_one_over_a_restart(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers:
        await part(brokers, tmp_path)
        async with brokers.broker("two", broker_id=1) as two, brokers.broker("three", broker_id=2) as three:
            await until(lambda: has_rival(two) and has_rival(three))
        async with brokers.broker("two", broker_id=1) as two:
            assert is_master(two) and await refuses_sends(two)


async def test_what_was_confirmed_is_not_cut_without_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with group(tmp_path) as brokers:
        async with copied_pair(brokers):
            pass  # both end
        async with brokers.broker("one") as one:
            await until(lambda: one.controller.in_sync_file.record.alone)
            await send(one, 7)  # which nobody else has, and producers were told are stored
            end = one.controller.store.max_physical_offset
        async with brokers.broker("two", broker_id=1) as two:
            assert (await promote(two)).code == 0
            await until(lambda: is_master(two))
            await send(two, 3)
            async with brokers.broker("one") as one:
                await until(lambda: is_slave(one) and follower_of(one.controller).ha_client.state is HaState.CONFIRMED)
                assert one.controller.store.max_physical_offset == end
                words = ("admin", "-n", brokers.namesrv_address, "settle", "broker-a", "--keep", two.controller.address)
                ran = await asyncio.to_thread(run_gantry, capsys, *words, "--yes")
                assert ran.code == 0, ran.err
                await same_logs(one, two)
                assert log_of(one.controller) == log_of(two.controller)
    assert len(list(tmp_path.glob("one/store.cut-*"))) == 1


async def test_every_member_is_told_of_a_new_epoch(tmp_path: Path) -> None:
    """A slave that can't follow the new master knows of its epoch all the same: it is not promoted to that number."""
    async with group(tmp_path) as brokers, brokers.broker("two", broker_id=1) as two:
        async with brokers.broker("one") as one, brokers.broker("three", broker_id=2) as three:
            await send(one, 20)
            await same_logs(one, two)
            await same_logs(one, three)
        async with brokers.broker("three", broker_id=2, ha_master_address="127.0.0.1:1") as three:
            await until(lambda: three.controller.outer_api.registered == (1, 1))
            assert (await promote(two)).code == 0
            await until(lambda: is_master(two))
            await until(lambda: three.controller.standing.standing.epochs.highest == 2)
            mine, masters = three.controller.standing.standing.epochs, two.controller.standing.standing.epochs
            assert (mine.current, mine.highest_id) == (1, masters.current_id)
