"""Brokers whose epochs and in-sync set stand in a real etcd: what is refused without it, and what it proves."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.controller import VIP_PORT_DISTANCE
from appliance.broker.epochs.membership import FILE_NAME
from appliance.broker.life import BrokerLife
from appliance.cli.admin.ha.explain import explain
from appliance.register.register import RESTORED
from appliance.register.term import IN_SYNC
from gantrymq.remoting.codes import RequestCode, ResponseCode
from tests.appliance.broker.replication.brokers import group, is_master, is_slave, promote, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.broker.replication.recorded import OnRecord, is_refused, takes_messages, until_record
from tests.appliance.peer import connected
from tests.gantrymq.client.ports import lasting_port
from tests.servers.etcd import etcd
from tests.waiting import until


@pytest.fixture
async def on_record(tmp_path: Path) -> AsyncIterator[OnRecord]:
    with etcd(tmp_path / "etcd") as (member,):
        async with group(tmp_path) as brokers:
            yield OnRecord(brokers, member)


@pytest.mark.slow
async def test_a_master_takes_no_message_before_etcd_knows_it(on_record: OnRecord) -> None:
    async with on_record.master("one") as one:
        assert await is_refused(one)
        await until(lambda: "ha init" in one.controller.slaves.published.state)  # type: ignore[union-attr]
        await on_record.begin(one)
        await until_record(lambda term: term.level == IN_SYNC, on_record)
    async with on_record.master("one") as one:  # once more, with its epoch on record
        await until(lambda: takes_messages(one))


@pytest.mark.slow
async def test_a_slave_that_etcd_proves_to_have_all_takes_over_though_the_others_are_silent(
    on_record: OnRecord,
) -> None:
    async with on_record.slave("two", 1) as two:
        async with on_record.master("one") as one, on_record.slave("three", 2) as three:
            await on_record.begin_with_copies(one, two, three)
            owner = one.controller.address
        # both are gone, and nobody was told: the set on record may still name both
        answer = await promote(two, acceptUnknown="false")
        assert answer.code == 0, answer.remark
        await until(lambda: is_master(two))
        term = await on_record.term()
        assert (term.epoch, term.owner) == (2, two.controller.address) and owner != term.owner
        assert two.controller.standing.standing.epochs.current_id == term.id
        await until(lambda: takes_messages(two))


@pytest.mark.slow
async def test_the_set_of_a_restored_etcd_proves_nothing(on_record: OnRecord) -> None:
    async with on_record.slave("two", 1) as two:
        async with on_record.master("one") as one, on_record.slave("three", 2) as three:
            await on_record.begin_with_copies(one, two, three)
        await on_record.is_restored()
        answer = await promote(two, acceptUnknown="false")
        assert answer.code != 0 and RESTORED in answer.remark
        view = await on_record.register.view()
        assert view.term is not None and view.term.epoch == 1
        assert RESTORED in explain("broker-a", view, [])[-1]
        answer = await promote(two, acceptUnknown="true")
        assert answer.code == 0, answer.remark
        await until(lambda: takes_messages(two))


@pytest.mark.slow
async def test_a_slave_that_left_the_set_on_record_is_refused_also_when_unknowns_are_accepted(
    on_record: OnRecord,
) -> None:
    async with on_record.slave("two", 1) as two:
        async with on_record.master("one") as one:
            await on_record.begin_with_copies(one, two)
        async with on_record.master("one", ha_listen_port=0, ha_slave_addresses="192.0.2.1") as one:
            await on_record.until_in_sync(one)  # the slave can't come back, and leaves
            await until(lambda: takes_messages(one))
        answer = await promote(two, acceptLoss=str(1 << 30))
        assert answer.code != 0 and "not in sync: etcd has" in (answer.remark or "")
        assert (await promote(two, force="true")).code == 0
        await until(lambda: is_master(two))
        assert (await on_record.register.view()).history[-1].reason == "promote --force"


@pytest.mark.slow
async def test_nobody_leaves_the_set_while_etcd_is_silent(on_record: OnRecord) -> None:
    async with on_record.master("one") as one:
        await on_record.begin(one)
        async with on_record.slave("two", 1) as two:
            await on_record.until_in_sync(one, two)
            await send(one, 5)
            gone = two.controller.address
            on_record.member.signal(signal.SIGSTOP)
        in_sync = one.controller.slaves.in_sync
        assert in_sync is not None
        async with connected(one.port) as peer:  # slaveTimeout: 3 s
            answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"x")
        assert answer.code in (ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE)
        assert gone in in_sync.required
        on_record.member.signal(signal.SIGCONT)
        await on_record.until_in_sync(one)
        await until(lambda: gone not in in_sync.required)


@pytest.mark.slow
async def test_a_master_whose_successor_stands_in_etcd_stops_though_nobody_else_tells_it(on_record: OnRecord) -> None:
    async with on_record.master("one") as one:
        await on_record.begin(one)
        later = await on_record.register.take_over(
            await on_record.register.view(), "127.0.0.1:1", above=0, start=0, reason="promote"
        )
        await until(lambda: is_slave(one))
        assert one.controller.standing.standing.epochs.highest == later.epoch


@pytest.mark.slow
async def test_a_master_that_starts_after_its_successor_began_opens_as_a_slave(on_record: OnRecord) -> None:
    async with on_record.master("one") as one:
        await on_record.begin(one)
    await on_record.register.take_over(
        await on_record.register.view(), "127.0.0.1:1", above=0, start=0, reason="promote"
    )
    async with on_record.master("one") as one:
        assert is_slave(one)


@pytest.mark.slow
@pytest.mark.parametrize("is_of_group", [False, True], ids=["another group", "a copy of this group"])
async def test_a_master_that_starts_while_another_etcd_answers_does_not_follow_its_record(
    on_record: OnRecord, *, is_of_group: bool
) -> None:
    async with on_record.master("one") as one:
        await on_record.begin(one)
        await on_record.join(one)
    await on_record.register.adopt(await on_record.register.view(), 9, "elsewhere", "192.0.2.1:10911")
    await (on_record.is_restored() if is_of_group else on_record.is_of_group("another"))
    async with on_record.master("one") as one:
        assert await is_refused(one)
        assert is_master(one) and one.controller.standing.standing.epochs.highest == 1


@pytest.mark.slow
async def test_without_etcd_no_epoch_begins_by_force_either(on_record: OnRecord) -> None:
    async with on_record.slave("two", 1) as two:
        async with on_record.master("one") as one:
            await on_record.begin_with_copies(one, two)
        on_record.member.kill()
        answer = await promote(two, force="true")
        assert answer.code != 0 and "next epoch can't be taken: no member of etcd answers" in (answer.remark or "")
        assert is_slave(two)


def end_of(store: Path, *, machine: str | None, is_closed: bool) -> None:
    """Have the folder look as after this end of its broker. machine: another boot than this one; None: this one."""
    path = store / "config" / FILE_NAME
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | {"machine": machine or document["machine"], "is_closed": is_closed}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "is_closed", "is_proven"),
    [(None, False, True), ("before", True, True), ("before", False, False)],
    ids=["killed", "stopped, and its machine", "lost its power"],
)
async def test_only_lost_power_takes_the_proof_from_a_slave_that_restarts_without_its_master(
    on_record: OnRecord, *, machine: str | None, is_closed: bool, is_proven: bool
) -> None:
    port = lasting_port(below=VIP_PORT_DISTANCE)
    async with on_record.master("one") as one, on_record.slave("two", 1, listen_port=port) as two:
        await on_record.begin_with_copies(one, two, are_joined=True)
        one.controller.slaves.published.keep = _silent  # type: ignore[union-attr, method-assign]
    end_of(on_record.store_of("two"), machine=machine, is_closed=is_closed)
    async with on_record.slave("two", 1, listen_port=port) as two:
        assert two.controller.address in (await on_record.term()).in_sync
        answer = await promote(two, acceptUnknown="false")
        assert (answer.code == 0) == is_proven, answer.remark


@pytest.mark.slow
async def test_a_log_that_lost_its_end_proves_nothing(on_record: OnRecord) -> None:
    port = lasting_port(below=VIP_PORT_DISTANCE)
    async with on_record.master("one") as one, on_record.slave("two", 1, listen_port=port) as two:
        await on_record.begin_with_copies(one, two, are_joined=True)
        end = two.controller.store.max_physical_offset
        await until(lambda: two.controller.in_sync_file.record.confirmed == end)
        one.controller.slaves.published.keep = _silent  # type: ignore[union-attr, method-assign]
    (log,) = (on_record.store_of("two") / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(end - 50)
        file.write(bytes(50))
    async with on_record.slave("two", 1, listen_port=port) as two:
        assert two.controller.store.max_physical_offset < end
        boot = two.controller.member.membership.boot
        assert (await on_record.term()).still_holds(two.controller.address, boot) is False


async def _silent(*_: object, **__: object) -> bool:
    """A master that publishes nothing more: it is gone before its slave leaves the set."""
    return False


@pytest.mark.slow
async def test_a_copied_store_folder_is_no_other_member(on_record: OnRecord) -> None:
    async with on_record.master("one") as one, on_record.slave("three", 2) as three:
        await on_record.begin(one)
        async with on_record.slave("two", 1) as two:
            await on_record.until_in_sync(one, two, three)
            await on_record.join(one, two, three)
        shutil.copytree(on_record.store_of("three"), on_record.store_of("copy"))
        (on_record.store_of("copy") / "abort").unlink(missing_ok=True)
        async with on_record.slave("copy", 3) as copy:
            await until(lambda: "copy of" in why(copy))
            assert three.controller.address in why(copy) and "config/member.json" in why(copy)
        shutil.rmtree(on_record.store_of("copy"))
        shutil.copytree(on_record.store_of("one"), on_record.store_of("copy"))
        async with on_record.slave("copy", 3) as copy:
            await until(lambda: "copy of the master's" in why(copy))
        for name in (FILE_NAME, FILE_NAME + ".bak"):
            (on_record.store_of("copy") / "config" / name).unlink()
        async with on_record.slave("copy", 3) as copy:
            await on_record.until_in_sync(one, three, copy)
            await on_record.join(copy)
            assert copy.controller.member.membership.number == 4


def why(slave: BrokerLife) -> str:
    follower = slave.controller.follower
    return follower.ha_client.why if follower is not None else ""


@pytest.mark.slow
async def test_a_store_of_another_group_is_no_master_here_and_no_slave(on_record: OnRecord) -> None:
    async with on_record.master("one") as one:
        await on_record.begin(one)
        await on_record.join(one)
        async with on_record.slave("two", 1) as two:
            await on_record.until_in_sync(one, two)
            await on_record.join(two)
    for name in ("one", "two"):
        path = on_record.store_of(name) / "config" / FILE_NAME
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {"group": f"another-than-{name}"}))
    async with on_record.master("one") as one, on_record.slave("two", 1) as two:
        assert await is_refused(one)
        assert "is of group" in one.controller.slaves.published.state  # type: ignore[union-attr]
        await until(lambda: "of another cluster" in why(two))
        answer = await promote(two)
        assert answer.code != 0 and "this store is of group another-than-two" in (answer.remark or "")
