"""Brokers with automaticFailover and a real etcd: who becomes the master when one is gone, and who does not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.frames import send_fields
from appliance.broker import controller
from appliance.broker.epochs.membership import FILE_NAME
from appliance.broker.epochs.turns import Cut
from appliance.broker.life import BrokerLife
from appliance.broker.replication.in_sync_file import InSyncRecord
from appliance.broker.replication.master import proof
from appliance.broker.transaction.check import load_ended
from appliance.broker.transaction.ended import EndedHalves
from appliance.errors import StartError
from appliance.failover.view import Beat, Figures
from appliance.register.etcd import EtcdError, OutcomeUnknown
from appliance.register.term import Term, View
from gantrymq import AdminClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from store.message_store import MessageStore
from store.upkeep import flush
from tests.appliance.broker.failover.automatic import LEASE_S, begun, begun_with_copies, die, master_of, member, reason
from tests.appliance.broker.replication.brokers import is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.pair import TOPIC
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages
from tests.appliance.peer import connected
from tests.waiting import until

pytestmark = pytest.mark.slow

TAIL = b"only the old master has this"


async def test_a_slave_in_sync_becomes_the_master_when_the_master_is_gone_and_the_others_follow(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "two", 1) as two, member(on_record, "three", 2) as three:
        async with master_of(on_record, two, three) as one:
            die(one)
        await until(lambda: takes_messages(two) or takes_messages(three))
        term = await on_record.term()
        winner, other = (two, three) if is_master(two) else (three, two)
        assert is_slave(other)
        assert (term.epoch, term.owner) == (2, winner.controller.address)
        assert set(term.in_sync) == {winner.controller.address, other.controller.address}
        await send(winner, 20)
        await same_logs(winner, other)
        row = (await on_record.register.view()).history[-1]
        assert row.reason == f"member 1 has not renewed for {LEASE_S:.1f} s"


async def test_who_was_in_sync_before_may_be_the_next_but_one_master_before_it_has_followed_the_next(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "three", 2) as three:
        async with member(on_record, "two", 1) as two:
            async with master_of(on_record, two, three) as one:
                die(one)
            await until(lambda: takes_messages(two) or takes_messages(three))
            winner = two if is_master(two) else three
            die(winner)
            end = winner.controller.store.max_physical_offset
            if winner is three:
                return  # which of the two it is does not matter: the other order is as good
        await until(lambda: takes_messages(three))
        assert (await on_record.term()).epoch == 3
        assert three.controller.store.max_physical_offset >= end


async def test_a_slave_waits_as_long_as_its_masters_settings_say(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0, failover_lease_s=LEASE_S + 4) as one:
            await begun(on_record, one, two)
            die(one)
        await until(lambda: takes_messages(two))
        row = (await on_record.register.view()).history[-1]
        assert row.reason == f"member 1 has not renewed for {LEASE_S + 4:.1f} s"


async def test_a_lock_proves_to_a_slave_what_it_proves_to_a_master(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun(on_record, one, two)
        candidate, register = two.controller.follower.candidate, two.controller.register  # type: ignore[union-attr]
        assert candidate is not None and register is not None
        await until(lambda: candidate.own().is_store_local)  # it has read the record
        register.is_store_local = False
        assert not candidate.own().is_store_local
        register.is_store_local, register.session = True, "another boot/ns/17/5/s"
        assert not candidate.own().is_store_local


async def test_no_slave_takes_over_by_an_earlier_record_than_it_has_seen(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await begun(on_record, one, two)
            earlier = await on_record.register.view()
            async with member(on_record, "three", 2) as three:
                await on_record.join(three)
                await on_record.until_in_sync(one, two, three)
            await on_record.until_in_sync(one, two)
            await send(one, 10)
            await same_logs(one, two)
            die(one)

        async def restored() -> View:
            """An old copy of etcd's folder."""
            return earlier

        register = two.controller.register
        assert register is not None
        register.view = restored  # type: ignore[method-assign]
        await until(lambda: "earlier record" in reason(two))
        assert (await on_record.term()).epoch == 1
        del register.view
        await until(lambda: takes_messages(two))


async def test_a_slave_that_opens_anew_takes_no_epoch_meanwhile(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            die(one)
        before, closes, closing = two.controller, asyncio.Event(), two.controller.outer_api.unregister_all

        async def late() -> None:
            """Name servers take their time."""
            await closes.wait()
            await closing()

        before.outer_api.unregister_all = late  # type: ignore[method-assign]
        before.turns.ask(Cut(before.store.max_physical_offset))
        await until(lambda: "reopens first" in reason(two))
        closes.set()
        await until(lambda: two.controller is not before and two.controller.is_open)
        async with member(on_record, "one", 0) as one:
            await until(lambda: takes_messages(one) or takes_messages(two))


async def test_an_old_master_comes_back_as_a_slave_though_its_settings_say_otherwise(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two):
            pass
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
            await begun(on_record, one, two)
        await until(lambda: "does not renew in etcd: automatic failover is off there" in reason(two))


async def test_while_etcd_is_silent_no_epoch_begins_and_afterwards_the_same_one_goes_on(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun(on_record, one, two)
        on_record.member.signal(signal.SIGSTOP)
        await until(lambda: not takes_messages(one) and "etcd can't be asked" in reason(two))
        on_record.member.signal(signal.SIGCONT)
        await until(lambda: takes_messages(one))
        await send(one, 5)
        assert (await on_record.term()).epoch == 1 and is_slave(two)


async def test_a_slave_whose_own_figures_etcd_does_not_take_waits_no_longer_for_that(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await begun(on_record, one, two)

            async def unanswered(number: int, figures: Figures, view: View) -> bool:
                raise OutcomeUnknown("one member of etcd stands still")

            assert two.controller.register is not None
            two.controller.register.tell = unanswered  # type: ignore[method-assign]
            die(one)
        await until(lambda: takes_messages(two))


async def test_a_try_of_a_takeover_that_is_executed_late_is_not_forgotten_for_the_next_try(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await begun(on_record, one, two)
            register, held = two.controller.register, list[dict[str, Any]]()
            assert register is not None
            succeed = register.succeed

            async def late(view: View, term: Term, beat: Beat, **more: Any) -> bool:
                """The first try has no answer, and etcd executes it just before the second."""
                held.append({"view": view, "term": term, "beat": beat, **more})
                if len(held) == 1:
                    raise OutcomeUnknown("etcd has an election")
                assert await succeed(**held[0])
                return await succeed(**held[-1])

            register.succeed = late  # type: ignore[method-assign]
            die(one)
        await until(lambda: takes_messages(two))
        assert len(held) == 2
        term = await on_record.term()
        assert term.is_of(2, held[0]["term"].id)


async def test_a_slave_that_takes_over_renews_while_it_opens(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with member(on_record, "two", 1) as two, member(on_record, "three", 2) as three:
        async with master_of(on_record, two, three) as one:
            loop, opens = asyncio.get_running_loop(), []

            def late(*parts: Any) -> EndedHalves:
                """Not before the next beat: without it the other slave takes this epoch away."""
                opens.append(asyncio.run_coroutine_threadsafe(on_record.register.view(), loop).result())
                while asyncio.run_coroutine_threadsafe(on_record.register.view(), loop).result().beat == opens[0].beat:
                    pass
                return load_ended(*parts)

            monkeypatch.setattr(controller, "load_ended", late)
            die(one)
        await until(lambda: takes_messages(two) or takes_messages(three))
        assert len(opens) == 1
        assert (await on_record.term()).epoch == 2


async def test_a_slave_that_opens_later_than_it_renews_says_which_setting_to_raise(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            monkeypatch.setattr(proof, "OPENING_LEASES", 0)
            die(one)
        await until(lambda: takes_messages(two))
    assert [each.message for each in caplog.records if getattr(each, "event", "") == "opening_late"] == [
        "opening took longer than it may be renewed: raise failoverLeaseSeconds"
    ]


async def test_a_slave_that_takes_over_renews_while_it_closes(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two, member(on_record, "three", 2) as three:
        closes = list[str]()

        def held(slave: BrokerLife) -> None:
            closing = slave.controller.outer_api.unregister_all

            async def late() -> None:
                """Not before the next beat: without it the other slave takes this epoch away."""
                closes.append(slave.controller.address)
                before = (await on_record.register.view()).beat
                while (await on_record.register.view()).beat == before:
                    await asyncio.sleep(0)
                await closing()

            slave.controller.outer_api.unregister_all = late  # type: ignore[method-assign]

        async with master_of(on_record, two, three) as one:
            held(two)
            held(three)
            die(one)
        await until(lambda: takes_messages(two) or takes_messages(three))
        term = await on_record.term()
        assert (term.epoch, [term.owner]) == (2, closes)
        winner = two if is_master(two) else three
        del (three if winner is two else two).controller.outer_api.unregister_all


async def test_a_slave_that_can_not_become_the_master_renews_no_more(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*parts: Any) -> None:
        raise OSError("no space left on device")

    with pytest.raises(ExceptionGroup) as ended:
        async with member(on_record, "two", 1) as two:
            async with master_of(on_record, two) as one:
                monkeypatch.setattr(two, "_put_on_record", full)
                die(one)
            await until(lambda: takes_messages(two))
    assert ended.group_contains(StartError, match="can't be put on record: no space left on device")
    assert (await on_record.term()).epoch == 2
    assert not [each for each in threading.enumerate() if each.name == "renewals"]


async def test_a_slave_that_is_overtaken_while_it_closes_renews_no_more(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            before, closing = two.controller, two.controller.outer_api.unregister_all

            async def overtaken() -> None:
                before.standing.hear(9, "another")
                await closing()

            before.outer_api.unregister_all = overtaken  # type: ignore[method-assign]
            die(one)
        await until(lambda: two.controller is not before and is_slave(two))
        assert (await on_record.term()).epoch == 2
        assert not [each for each in threading.enumerate() if each.name == "renewals"]


async def test_a_slave_that_has_lost_the_beginning_of_its_own_epoch_when_it_opens_leaves_it_to_another(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with member(on_record, "three", 2) as three:
        register = three.controller.register
        assert register is not None
        with pytest.raises(ExceptionGroup) as ended:
            async with member(on_record, "two", 1) as two:
                async with master_of(on_record, two, three) as one:
                    await one_more_that_is_lost(monkeypatch, one, two, three)

                    async def silent() -> View:
                        raise EtcdError("not yet")

                    register.view = silent  # type: ignore[method-assign]
                    die(one)
                await until(lambda: takes_messages(two))
        assert ended.group_contains(StartError, match="master of epoch 2, which begins behind that")
        assert (await on_record.term()).epoch == 2
        monkeypatch.undo()
        two.controller.store.close()  # as the end of a process does
        del register.view
        await until(lambda: takes_messages(three))
        assert three.controller.store.max_physical_offset > two.controller.store.max_physical_offset
        async with member(on_record, "two", 1) as two:
            await on_record.until_in_sync(three, two)
            assert is_slave(two)


async def test_a_master_that_has_lost_the_beginning_of_its_own_epoch_can_be_adopted_when_no_other_is_left(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExceptionGroup) as ended:
        async with member(on_record, "two", 1) as two:
            async with master_of(on_record, two) as one:
                await one_more_that_is_lost(monkeypatch, one, two)
                die(one)
            await until(lambda: takes_messages(two))
    assert ended.group_contains(StartError, match="master of epoch 2, which begins behind that")
    monkeypatch.undo()
    two.controller.store.close()
    async with member(on_record, "two", 1, automatic_failover=False) as two:
        epochs, view = two.controller.standing.standing.epochs, await on_record.register.view()
        await on_record.register.adopt(view, epochs.current, epochs.current_id, two.controller.address)
        await until(lambda: takes_messages(two))
    async with member(on_record, "two", 1) as two, member(on_record, "one", 0) as one:
        await on_record.until_in_sync(one, two)
        await send(two, 5)
        await same_logs(one, two)


async def one_more_that_is_lost(monkeypatch: pytest.MonkeyPatch, master: BrokerLife, *slaves: BrokerLife) -> None:
    """The stores that load from now on end before the last message, as after a record whose checksum is wrong."""
    kept, load = master.controller.store.max_physical_offset, MessageStore.load
    await send(master, 1)
    for slave in slaves:
        await same_logs(master, slave)
    monkeypatch.setattr(MessageStore, "load", lambda store, *, cut_to=None: load(store, cut_to=kept))


async def test_a_master_whose_disk_never_takes_who_is_in_sync_leaves_its_role(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    try:
        async with member(on_record, "two", 1) as two, master_of(on_record, two) as one:
            await until(lambda: one.controller.slaves.is_all_confirmed)
            keep = one.controller.in_sync_file.keep

            def late(record: InSyncRecord) -> None:
                goes_on.wait()
                keep(record)

            monkeypatch.setattr(one.controller.in_sync_file, "keep", late)
            await send(one, 1)  # more is confirmed, which is to be recorded
            await until(lambda: takes_messages(two))
            assert (await on_record.term()).epoch == 2
            goes_on.set()
    finally:
        goes_on.set()


async def test_a_master_whose_machine_lost_its_power_leaves_its_role_to_one_that_has_more(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two):
            pass
        machine_lost_power(on_record.store_of("one"))
        async with member(on_record, "one", 0) as one:  # before the lease is over
            await until(lambda: takes_messages(two))
            await on_record.until_in_sync(one, two)
            assert is_slave(one) and (await on_record.term()).epoch == 2


async def test_a_slave_that_lost_its_power_does_not_take_over_though_all_flush_synchronously(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slave acknowledges what it has in memory, so a message may be acknowledged that its disk lacks."""
    synchronous = {"store": {"flush_disk_type": "SYNC_FLUSH"}}
    async with contextlib.AsyncExitStack() as ends:
        one = await ends.enter_async_context(member(on_record, "one", 0, **synchronous))
        async with member(on_record, "two", 1, **synchronous) as two:
            await begun_with_copies(on_record, one, two)
            store = two.controller.store
            await store.until_flushed()
            monkeypatch.setattr(store.parts.log, "sync", lambda: None)
            await send(one, 1)
            assert store.flushed_offset < store.max_physical_offset
            die(one)
            await ends.aclose()
    machine_lost_power(on_record.store_of("two"))
    async with member(on_record, "two", 1, **synchronous) as two:
        await until(lambda: "the machine of member 2 has restarted" in reason(two) or is_master(two))
        assert is_slave(two) and (await on_record.term()).epoch == 1
        async with member(on_record, "one", 0, **synchronous) as one:
            await until(lambda: takes_messages(one))
            await on_record.until_in_sync(one, two)
            await same_logs(one, two)


async def test_a_master_with_little_to_write_has_the_disk_take_it_within_its_lease(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is not flushed for a lease stands for a disk that does not write, and ends the master's proof."""
    monkeypatch.setattr(flush, "THOROUGH_INTERVAL_S", 3600.0)
    async with member(on_record, "two", 1) as two, master_of(on_record, two) as one:
        store, asked = one.controller.store, asyncio.Event()
        flush_soon = store.flush_soon
        monkeypatch.setattr(store, "flush_soon", lambda: (asked.set(), flush_soon()))
        await send(one, 1)
        await until(lambda: asked.is_set() and store.flushed_offset >= store.max_physical_offset)


def machine_lost_power(store: Path) -> None:
    """Have the folder look so."""
    path = store / "config" / FILE_NAME
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps(document | {"machine": "before", "is_closed": False}))


async def send_refused(master: BrokerLife) -> None:
    """A master alone in its set acknowledges nothing."""
    async with connected(master.port) as peer:
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), b"x")
        # The second, where the connection of the slave that left has not ended yet.
        assert answer.code in (ResponseCode.SLAVE_NOT_AVAILABLE, ResponseCode.FLUSH_SLAVE_TIMEOUT), answer.remark


async def test_what_only_the_old_master_had_is_kept_beside_its_store_shown_and_never_served(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            shown = await max_offset(one)
            assert two.controller.follower is not None
            two.controller.follower.ha_client.pause()
            end = one.controller.store.max_physical_offset
            async with connected(one.port) as peer:
                asked = asyncio.create_task(
                    peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields("G", TOPIC, 0, ""), TAIL)
                )  # which gets no answer: it is not confirmed
                await until(lambda: one.controller.store.max_physical_offset > end)
                assert await max_offset(one) == shown
                die(one)
                asked.cancel()
        await until(lambda: takes_messages(two))
        async with member(on_record, "one", 0) as one:
            await on_record.until_in_sync(one, two)
            await send(two, 5)
            await same_logs(one, two)
            for name in ("one", "two"):
                assert not any(TAIL in each.read_bytes() for each in (on_record.store_of(name) / "commitlog").iterdir())
            async with AdminClient(one.controller.config.namesrv_addresses) as admin:
                (tail,) = (await admin.succession.failover("broker-a")).kept_tails
            assert tail.address == one.controller.address
            with StoreFolder(Path(tail.folder)) as kept:
                rows = list(dump_records(kept, Selection(), with_body=True))
            assert [row["body"] for row in rows if "body" in row] == [TAIL.decode()]


async def max_offset(broker: BrokerLife) -> int:
    async with connected(broker.port) as peer:
        answer = await peer.ask(RequestCode.GET_MAX_OFFSET, {"topic": TOPIC, "queueId": "0"})
        return int(answer.ext_fields["offset"])
