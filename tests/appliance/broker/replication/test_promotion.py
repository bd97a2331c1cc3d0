"""A slave becomes the master: what it needs, what it goes on with, and what becomes of the master of before."""

from __future__ import annotations

import asyncio
import functools
import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.broker.timer.service import TimerService
from appliance.process import gc_pacing
from gantrymq.client.admin.promotion import NO_REGISTER
from gantrymq.message import properties as names
from gantrymq.remoting.codes import RequestCode, ResponseCode
from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from tests.appliance.broker.replication.brokers import copied_pair, group, is_master, is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC, follower_of, log_of
from tests.appliance.broker.transaction.parties import COMMIT, ProducerPeer, bodies
from tests.appliance.cli.running_gantry import gantry_admin, run_gantry
from tests.appliance.peer import connected, registration
from tests.waiting import until


async def test_the_master_of_before_comes_back_as_a_slave_without_its_tail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with group(tmp_path) as brokers:
        async with copied_pair(brokers) as (one, two):
            common = one.controller.store.max_physical_offset
            answer = await promote(two)
            assert answer.code == 1 and "use a switchover, or stop it first" in (answer.remark or "")
        async with brokers.broker("one") as one:
            await send(one, 7, b"not copied %d ")
            uncopied_end = one.controller.store.max_physical_offset
        async with brokers.broker("two", broker_id=1) as two:
            answer = await promote(two)
            assert answer.code == 0, answer.remark
            await until(lambda: is_master(two))
            assert two.controller.standing.standing.epochs.current == 2
            await send(two, 30)
            async with brokers.broker("one") as one:
                await until(lambda: is_slave(one))  # and it may have confirmed its tail alone: a person gives that up
                words = ("admin", "-n", brokers.namesrv_address, "settle", "broker-a", "--keep", two.controller.address)
                ran = await asyncio.to_thread(run_gantry, capsys, *words, "--yes")
                assert ran.code == 0, ran.err
                await same_logs(one, two)
                assert log_of(one.controller) == log_of(two.controller)
                assert one.controller.config.broker_id == 1
        kept = list(tmp_path.glob("one/store.cut-*"))
        assert len(kept) == 1
        with StoreFolder(kept[0]) as folder:
            rows = [row for row in dump_records(folder, Selection(), with_body=True) if "body" in row]
        assert rows[0]["physicalOffset"] == common
        assert rows[-1]["physicalOffset"] + rows[-1]["storeSize"] == uncopied_end
        assert [row["body"] for row in rows] == [f"not copied {number} " for number in range(7)]


def noted_collections(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Callable[[int], int]]:
    """The generations that were collected, and what notes them in place of gc.collect; later ones are far away."""
    collected: list[int] = []

    def collect(generation: int = 2) -> int:
        collected.append(generation)
        return 0

    monkeypatch.setattr(gc_pacing, "SETTLED_S", 3600.0)
    return collected, collect


async def test_a_new_master_serves_before_all_of_its_memory_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That takes a core for the longer the more there is, and clients wait."""
    collected, collect = noted_collections(monkeypatch)
    async with group(tmp_path) as brokers:
        async with copied_pair(brokers):
            pass
        async with brokers.broker("two", broker_id=1) as two:
            monkeypatch.setattr(gc, "collect", collect)
            assert (await promote(two)).code == 0
            await until(lambda: is_master(two))
            await send(two, 1)
            await until(lambda: bool(collected))  # the pacer's, of young objects
            monkeypatch.undo()
    assert 2 not in collected


async def test_a_broker_that_starts_looks_at_all_of_its_memory_before_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the middle of its first answers."""
    collected, collect = noted_collections(monkeypatch)
    monkeypatch.setattr(gc, "collect", collect)
    async with group(tmp_path) as brokers, brokers.broker("one"):
        assert collected.count(2) == 1
    monkeypatch.undo()


async def test_a_master_that_hears_of_a_later_epoch_takes_no_message_more(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers, copied_pair(brokers) as (one, two):
        answer = await promote(two, force="true")  # though the master is there: two of them, for a moment
        assert answer.code == 0, answer.remark
        await until(lambda: is_master(two) and is_slave(one))
        await send(two, 5)
        await same_logs(one, two)
        assert log_of(one.controller) == log_of(two.controller)
        await until(lambda: not two.controller.standing.standing.untold)
        async with connected(brokers.namesrv_port) as peer:  # as if the other one were back, and knew of nothing
            fields, body = registration("10.9.9.9:10911")
            late = await peer.ask(RequestCode.REGISTER_BROKER, fields | {"masterEpoch": "1"}, body)
        assert late.code == ResponseCode.SYSTEM_ERROR and "epoch 1 of broker-a is over" in (late.remark or "")


async def test_a_planned_switch_over_goes_there_and_back_with_all_that_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with group(tmp_path) as brokers, brokers.broker("one") as one, brokers.broker("two", broker_id=1) as two:
        admin = functools.partial(gantry_admin, capsys, brokers.namesrv_address)
        await send(one, 10)
        one.controller.offsets.commit("Readers", TOPIC, 0, 7)
        delayed = names.encode_properties({"DELAY": "2"})
        await send(one, 1, b"for later", properties=delayed)
        await same_logs(one, two)
        refused = await admin("promote", "broker-a", "--yes")
        assert refused.code == 2 and "is the master of epoch 1" in refused.err
        looked = await admin("switchover", "broker-a", "--dry-run")
        assert looked.code == 0 and is_master(one), looked.err
        explained = await admin("ha", "explain", "broker-a")
        assert NO_REGISTER in looked.out and explained.code == 2 and NO_REGISTER in explained.err
        for epoch, old, new in ((2, one, two), (3, two, one)):
            before = old.controller.store.max_physical_offset
            ran = await admin("switchover", "broker-a", "--yes")
            assert ran.code == 0, ran.err
            assert f"in epoch {epoch}" in ran.out and NO_REGISTER in ran.out
            assert is_master(new) and is_slave(old)
            assert new.controller.standing.standing.epochs.history[-1].start >= before
            assert new.controller.offsets.query("Readers", TOPIC, 0) == 7
            await send(new, 3)
            await same_logs(one, two)
            assert log_of(one.controller) == log_of(two.controller)
        assert not list(tmp_path.glob("*/store.cut-*"))
        end = one.controller.store.max_offset(TOPIC, 0)
        await until(lambda: one.controller.store.max_offset(TOPIC, 0) == 17)
        assert end <= 17, "ten, three twice, and the delayed one once"


async def test_to_hear_only_now_of_an_epoch_that_the_request_counts_in_is_no_change(tmp_path: Path) -> None:
    async with group(tmp_path) as brokers, brokers.broker("two", broker_id=1) as two:
        async with brokers.broker("one") as one:
            await send(one, 10)
            await same_logs(one, two)
        standing = two.controller.standing
        standing.change(epochs=standing.standing.epochs.heard(5))  # after it was asked what it knows
        answer = await promote(two, epoch="1", above="4")
        assert answer.code == 1 and "it has changed meanwhile: the highest epoch is 5" in (answer.remark or "")
        answer = await promote(two, epoch="1", above="5", end="1")
        assert answer.code == 1 and "it has changed meanwhile" in (answer.remark or "")
        answer = await promote(two, epoch="1", above="5")
        assert answer.code == 0, answer.remark
        assert answer.ext_fields["epoch"] == "6"
        await until(lambda: is_master(two))


async def test_promote_says_what_is_missing_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with group(tmp_path) as brokers, brokers.broker("two", broker_id=1) as two:
        admin = functools.partial(gantry_admin, capsys, brokers.namesrv_address)
        never = await admin("promote", "broker-a", "--yes")
        assert never.code == 2 and "knows no epochs" in never.err and "what it lacks is not known" in never.err
        async with brokers.broker("one") as one:
            await send(one, 10)
            await same_logs(one, two)
        lacking = follower_of(two.controller).ha_client
        lacking.master_end += 1000  # as if it had heard of more than it got
        two.controller.topics.delete(TOPIC)  # as if its settings had not come before the master went
        refused = await admin("promote", "broker-a", "--yes")
        assert refused.code == 2 and "lacks 1,000 bytes" in refused.err
        assert is_slave(two)
        loss = ("--accept-loss", "1000")
        unknown = await admin("promote", "broker-a", *loss, "--yes")
        assert unknown.code == 2 and "no slave was in sync" in unknown.err and "--accept-unknown" in unknown.err
        answer = await promote(two, acceptLoss="1000", acceptUnknown="false")  # a tool that asks nobody
        assert answer.code == 1 and "no slave was in sync" in (answer.remark or "")
        shown = await admin("promote", "broker-a", *loss, "--accept-unknown", "--dry-run", "--json")
        assert shown.code == 0 and '"missingBytes": 1000' in shown.out
        done = await admin("promote", "broker-a", *loss, "--accept-unknown", "--yes")
        assert done.code == 0 and NO_REGISTER in done.out, done.err
        assert is_master(two)
        assert two.controller.standing.standing.role is not None
        assert two.controller.topics.get(TOPIC) is not None
        await send(two, 1)


async def test_transactions_and_timed_messages_go_on_at_the_new_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slave is told of what was delivered until now, although the master has not put it on its own record yet."""

    async def later(_timer: TimerService, *, sync: bool) -> bool:
        return not sync

    monkeypatch.setattr(TimerService, "keep_record", later)
    async with group(tmp_path) as brokers, brokers.broker("two", broker_id=1) as two:
        async with brokers.broker("one") as one:
            await send(one, 1)
            await same_logs(one, two)
            async with connected(one.port) as peer:
                producer = ProducerPeer(peer)
                ended, open_ = await producer.prepare(b"ended before"), await producer.prepare(b"ended after")
                assert (await producer.end(ended, COMMIT)).code == 0
                await producer.send(b"due before", TIMER_DELAY_MS="20")
                due_by_ms = time.time() * 1000 + 20
                await producer.send(b"due after", TIMER_DELAY_MS="4000")
            master = one.controller
            await until(lambda: b"due before" in bodies(master) and master.timer.reached[1] > due_by_ms)
            sink = follower_of(two.controller).sink
            for _ in range(2):  # one may have been under way already; how long it is, a busy machine decides
                before = sink.taken_at
                await until(lambda before=before: sink.taken_at > before)
            await same_logs(one, two)
        was_slow = b"due after" in bodies(two.controller)  # it was due at the old master already, and may come again
        assert (await promote(two)).code == 0
        await until(lambda: is_master(two))
        async with connected(two.port) as peer:
            assert (await ProducerPeer(peer).end(open_, COMMIT)).code == 0
            assert (await ProducerPeer(peer).end(ended, COMMIT)).code == 0, "which stores nothing again"
        await until(lambda: b"due after" in bodies(two.controller))
        await until(lambda: two.controller.timer.pending == 0)
        found = bodies(two.controller)
        assert set(found) == {b"due after", b"due before", b"ended after", b"ended before"}
        assert was_slow or len(found) == 4, found
