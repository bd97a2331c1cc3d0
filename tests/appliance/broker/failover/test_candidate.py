"""Brokers with automaticFailover and a real etcd: who becomes the master when one is gone, and who does not."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.epochs.membership import FILE_NAME
from appliance.broker.life import BrokerLife
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import group as brokers_of
from tests.appliance.broker.replication.brokers import is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages
from tests.appliance.peer import connected
from tests.servers.etcd import etcd
from tests.waiting import until

pytestmark = pytest.mark.slow

LEASE_S = 3
SETTINGS: dict[str, Any] = {
    "broker_role": "SYNC_MASTER",
    "all_ack_in_sync": True,
    "read_confirmed_only": True,
    "in_sync_lag_ms": 1000,
    "automatic_failover": True,
    "failover_lease_s": LEASE_S,
}


@pytest.fixture
async def on_record(tmp_path: Path) -> AsyncIterator[OnRecord]:
    with etcd(tmp_path / "etcd") as (member,):
        async with brokers_of(tmp_path) as brokers:
            yield OnRecord(brokers, member)


def member(
    on_record: OnRecord, name: str, number: int, **more: Any
) -> contextlib.AbstractAsyncContextManager[BrokerLife]:
    settings = {**SETTINGS, **more}
    if number:
        del settings["broker_role"]
        return on_record.slave(name, number, **settings)
    return on_record.master(name, **settings)


async def test_a_slave_in_sync_becomes_the_master_when_the_master_is_gone_and_the_others_follow(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "two", 1) as two, member(on_record, "three", 2) as three:
        async with member(on_record, "one", 0) as one:
            await on_record.begin(one)
            await on_record.join(one, two, three)
            await on_record.until_in_sync(one, two, three)
            await send(one, 20)
            await same_logs(one, two)
            await same_logs(one, three)
        await until(lambda: takes_messages(two) or takes_messages(three))
        winner, other = (two, three) if is_master(two) else (three, two)
        assert is_slave(other)
        await on_record.until_in_sync(winner, other)
        await send(winner, 20)
        await same_logs(winner, other)
        term = await on_record.term()
        assert (term.epoch, term.owner) == (2, winner.controller.address)
        row = (await on_record.register.view()).history[-1]
        assert row.reason == f"member 1 has not renewed for {LEASE_S:.1f} s"


def reason(slave: BrokerLife) -> str:
    """Why it does not become the master now."""
    follower = slave.controller.follower
    return "" if follower is None or follower.candidate is None else follower.candidate.refusal


async def test_an_old_master_comes_back_as_a_slave_though_its_settings_say_otherwise(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await on_record.begin(one)
            await on_record.join(one, two)
            await on_record.until_in_sync(one, two)
            await send(one, 10)
            await same_logs(one, two)
        await until(lambda: takes_messages(two))
        async with member(on_record, "one", 0) as one:
            assert is_slave(one)
            await on_record.until_in_sync(one, two)
            await send(two, 10)
            await same_logs(one, two)


async def test_a_slave_finds_the_new_master_in_etcd_though_its_settings_name_the_dead_one(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await on_record.begin(one)
            pinned = f"127.0.0.1:{one.controller.slaves.port}"
            async with member(on_record, "three", 2, ha_master_address=pinned) as three:
                await on_record.join(one, two, three)
                await on_record.until_in_sync(one, two, three)
        async with member(on_record, "three", 2, ha_master_address=pinned) as three:
            await until(lambda: takes_messages(two))
            await on_record.until_in_sync(two, three)


async def test_a_slave_that_is_not_in_sync_waits_for_the_master_and_says_why(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one:
        await on_record.begin(one)
        async with member(on_record, "two", 1) as two:
            await on_record.join(one, two)
            await on_record.until_in_sync(one, two)
        await on_record.until_in_sync(one)
        await send_refused(one)
    async with member(on_record, "two", 1) as two:
        await until(lambda: "member 2 is not in sync: epoch 1 has 1 on record" in reason(two))
        async with member(on_record, "one", 0) as one:
            await on_record.until_in_sync(one, two)
            assert (await on_record.term()).epoch == 1


async def test_no_slave_takes_over_from_a_master_that_does_not_renew(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0, automatic_failover=False) as one:
            await on_record.begin(one)
            await on_record.join(one, two)
            await on_record.until_in_sync(one, two)
        await until(lambda: "does not renew in etcd: automatic failover is off there" in reason(two))


async def test_while_etcd_is_silent_no_epoch_begins_and_afterwards_the_same_one_goes_on(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await on_record.begin(one)
        await on_record.join(one, two)
        await on_record.until_in_sync(one, two)
        on_record.member.signal(signal.SIGSTOP)
        await until(lambda: not takes_messages(one) and "etcd can't be asked" in reason(two))
        on_record.member.signal(signal.SIGCONT)
        await until(lambda: takes_messages(one))
        await send(one, 5)
        assert (await on_record.term()).epoch == 1 and is_slave(two)


async def test_a_master_whose_machine_lost_its_power_leaves_its_role_to_one_that_has_more(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await on_record.begin(one)
            await on_record.join(one, two)
            await on_record.until_in_sync(one, two)
            await send(one, 10)
            await same_logs(one, two)
        machine_lost_power(on_record.store_of("one"))
        async with member(on_record, "one", 0) as one:  # before the lease is over
            await until(lambda: takes_messages(two))
            await on_record.until_in_sync(one, two)
            assert is_slave(one) and (await on_record.term()).epoch == 2


def machine_lost_power(store: Path) -> None:
    """Have the folder look so."""
    path = store / "config" / FILE_NAME
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | {"machine": "before", "is_closed": False}))


async def send_refused(master: BrokerLife) -> None:
    """A master alone in its set acknowledges nothing."""
    async with connected(master.port) as peer:
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"x")
        assert answer.code == ResponseCode.SLAVE_NOT_AVAILABLE, answer.remark
