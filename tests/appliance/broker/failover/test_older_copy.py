"""Stores that an administrator has replaced by an older copy: what they say of their boot is of a longer log."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.broker.epochs.membership import FILE_NAME
from appliance.broker.life import BrokerLife
from appliance.failover.view import Pause
from tests.appliance.broker.failover.automatic import begun_with_copies, die, master_of, member, reason
from tests.appliance.broker.replication.brokers import is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages
from tests.waiting import until

pytestmark = pytest.mark.slow


async def until_told(on_record: OnRecord, slave: BrokerLife) -> None:
    """Until etcd knows where its log ends now."""

    async def is_told() -> bool:
        told = (await on_record.register.view()).figures.values()
        own = slave.controller.address, slave.controller.store.max_physical_offset
        return any((said.address, said.log_end) == own for _, said in told)

    await until(is_told)


def put_back(copy: Path, store: Path) -> None:
    shutil.rmtree(store)
    shutil.copytree(copy, store)


@contextlib.asynccontextmanager
async def gone_on_after_a_copy(on_record: OnRecord, two: BrokerLife, copy: Path) -> AsyncIterator[BrokerLife]:
    """A master with more messages than the copy of its store has, and its slave the same; failover is paused."""
    async with master_of(on_record, two) as one:
        await on_record.register.pause(await on_record.register.view(), Pause("ops", "a copy", 0, 0))
        die(one)
    shutil.copytree(on_record.store_of("one"), copy)
    async with member(on_record, "one", 0) as one:
        await until(lambda: takes_messages(one))
        await on_record.until_in_sync(one, two)
        await send(one, 10)
        await same_logs(one, two)
        yield one


async def test_a_slave_with_an_older_copy_of_its_store_does_not_take_over(on_record: OnRecord, tmp_path: Path) -> None:
    """By number and boot it is in sync, and it lacks what was acknowledged since."""
    store, copy = on_record.store_of("two"), tmp_path / "copy"
    async with contextlib.AsyncExitStack() as ends:
        one = await ends.enter_async_context(member(on_record, "one", 0))
        async with member(on_record, "two", 1) as two:
            await begun_with_copies(on_record, one, two)
        shutil.copytree(store, copy)
        async with member(on_record, "two", 1) as two:
            await on_record.until_in_sync(one, two)
            await send(one, 10)
            await same_logs(one, two)
            await until_told(on_record, two)
            die(one)
            await ends.aclose()
    put_back(copy, store)
    async with member(on_record, "two", 1) as two:
        await until(lambda: two.controller.is_open and ("a part of its log is lost" in reason(two) or is_master(two)))
        assert is_slave(two) and (await on_record.term()).epoch == 1
        async with member(on_record, "one", 0) as one:
            await until(lambda: takes_messages(one))
            await on_record.until_in_sync(one, two)
            await same_logs(one, two)


async def test_a_master_with_an_older_copy_of_its_store_leaves_its_role_to_one_that_has_more(
    on_record: OnRecord, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, copy = on_record.store_of("one"), tmp_path / "copy"
    async with member(on_record, "two", 1) as two:
        async with gone_on_after_a_copy(on_record, two, copy) as one:
            await until_told(on_record, two)
            end = two.controller.store.max_physical_offset
            await on_record.register.resume(await on_record.register.view())
            die(one)
        put_back(copy, store)
        async with member(on_record, "one", 0) as one:
            await until(lambda: takes_messages(one) or takes_messages(two))
            assert is_master(two) and two.controller.store.max_physical_offset >= end
            (fenced,) = (each for each in caplog.records if each.message == "master is fenced")
            assert "this store may be an older copy" in vars(fenced)["why"]
            await on_record.until_in_sync(one, two)
            await same_logs(one, two)


async def test_a_restored_master_that_is_no_member_any_more_confirms_nothing(
    on_record: OnRecord, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`gantry restore` leaves member.json out, so what others told of the member's log is not of this store."""
    store, copy = on_record.store_of("one"), tmp_path / "copy"
    async with member(on_record, "two", 1) as two, gone_on_after_a_copy(on_record, two, copy) as one:
        die(one)
    await on_record.register.resume(await on_record.register.view())
    put_back(copy, store)
    for name in (FILE_NAME, f"{FILE_NAME}.bak"):
        (store / "config" / name).unlink(missing_ok=True)
    before = await on_record.term()
    async with member(on_record, "one", 0) as one:
        await until(lambda: takes_messages(one) or is_slave(one))
        assert not takes_messages(one) and await on_record.term() == before
        (fenced,) = (each for each in caplog.records if each.message == "master is fenced")
        assert "this is another store" in vars(fenced)["why"]
        async with member(on_record, "two", 1) as two:
            await until(lambda: takes_messages(two))
            await on_record.until_in_sync(one, two)
            await same_logs(one, two)
