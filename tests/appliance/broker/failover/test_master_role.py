"""A master that gives its role up: it stops, or an administrator names another one in etcd."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from appliance.broker import controller
from appliance.failover.view import Pause, Switch, TermState
from appliance.process.awake import awake_s
from appliance.register.register import Refused
from tests.appliance.broker.failover.automatic import LEASE_S, begun, member
from tests.appliance.broker.replication.brokers import is_master, is_slave, same_logs, send
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages, until_record
from tests.waiting import until

pytestmark = pytest.mark.slow


async def ask_for(on_record: OnRecord, target: int) -> None:
    view = await on_record.register.view()
    assert view.term is not None
    switch = Switch("s", target, True, 0, view.term.epoch, view.term_revision)
    await on_record.register.switch(view, switch)


async def test_a_master_that_stops_has_a_successor_begin_without_waiting_for_the_lease(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1, failover_lease_s=60) as two:
        async with member(on_record, "one", 0, failover_lease_s=60) as one:
            await begun(on_record, one, two)
            await send(one, 20)
        await until(lambda: takes_messages(two))
        row = (await on_record.register.view()).history[-1]
        assert row.reason == "the master before has released the term"
        async with member(on_record, "one", 0, failover_lease_s=60) as one:
            await until(lambda: is_slave(one))
            await same_logs(two, one)


async def test_a_master_that_stops_while_failover_is_paused_keeps_its_role(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with member(on_record, "one", 0) as one:
            await begun(on_record, one, two)
            await on_record.register.pause(await on_record.register.view(), Pause("ops", "a new disk", 1, 0))
        assert (await on_record.term()).state is TermState.OPEN
        async with member(on_record, "one", 0) as one:
            await until(lambda: takes_messages(one))
            assert ((await on_record.term()).epoch, is_slave(two)) == (1, True)


async def test_a_master_that_stopped_goes_on_in_its_epoch_when_no_other_took_it(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1, automatic_failover=False) as two:
        await begun(on_record, one, two)
        await one.controller.master_role.release()  # type: ignore[union-attr]
        assert (await on_record.term()).state is TermState.RELEASED
        await until(lambda: not takes_messages(one))
    async with member(on_record, "one", 0) as one:
        await until(lambda: takes_messages(one))
        term = await on_record.term()
        assert (term.epoch, term.state, term.session) == (1, TermState.OPEN, one.controller.session)


async def test_on_a_store_that_is_not_local_a_master_that_was_started_again_waits_for_the_lease(
    on_record: OnRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with member(on_record, "one", 0) as one:
        await begun(on_record, one)
        await until(lambda: one.controller.slaves.proof.is_proven)  # type: ignore[union-attr]
    monkeypatch.setattr(controller, "is_local", lambda folder: False)
    began = awake_s()
    async with member(on_record, "one", 0) as one:
        await until(lambda: "may still be the master" in one.controller.slaves.published.state)  # type: ignore[union-attr]
        assert not takes_messages(one)
        await until(lambda: takes_messages(one))
        assert awake_s() - began >= LEASE_S
        assert (await on_record.term()).session == one.controller.session


async def test_a_switchover_through_etcd_moves_the_role_and_loses_nothing(on_record: OnRecord) -> None:
    patient = {"failover_lease_s": 60, "slave_timeout_ms": 60_000}  # on a busy machine all of them are slow
    async with (
        member(on_record, "one", 0, **patient) as one,
        member(on_record, "two", 1, **patient) as two,
        member(on_record, "three", 2, **patient) as three,
    ):
        await begun(on_record, one, two, three)
        await send(one, 20)

        async def has_moved() -> bool:
            view = await on_record.register.view()
            if view.switch is None and view.history[-1].reason != "switchover":
                await ask_for(on_record, 3)  # also when it was cancelled: a slave may be lost for a moment
            return takes_messages(three)

        await until(has_moved)
        assert not is_master(two)
        await same_logs(three, two)  # then each is there to acknowledge in time
        await same_logs(three, one)
        await send(three, 20, again=True)  # on a busy machine a slave is lost for a moment
        await same_logs(three, two)
        await same_logs(three, one)
        view = await on_record.register.view()
        assert (view.history[-1].reason, view.switch) == ("switchover", None)


async def test_a_switchover_to_a_slave_that_is_gone_is_cancelled_and_says_why(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one:
        async with member(on_record, "two", 1) as two:
            await begun(on_record, one, two)
        await until_record(lambda term: len(term.in_sync) == 1, on_record)
        await ask_for(on_record, 2)
        while (view := await on_record.register.view()).switch is not None:
            await asyncio.sleep(0.05)  # until the master has looked
        assert view.cancelled == ("s", "member 2 is not in sync")
        assert takes_messages(one)


async def test_a_master_takes_its_role_back_when_no_member_has_taken_it_for_a_lease(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1, automatic_failover=False) as two:
        await begun(on_record, one, two)
        await ask_for(on_record, 2)
        await until(lambda: not takes_messages(one))
        await until_record(lambda term: term.state is TermState.RELEASED, on_record)
        await until_record(lambda term: term.state is TermState.OPEN, on_record)
        await until(lambda: takes_messages(one))
        await send(one, 5)
        assert (await on_record.term()).epoch == 1


async def test_no_switchover_is_asked_for_while_failover_is_paused(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun(on_record, one, two)
        await on_record.register.pause(await on_record.register.view(), Pause("ops", "a new disk", 1, 0))
        with pytest.raises(Refused, match="paused"):
            await ask_for(on_record, 2)


async def test_a_switch_that_is_taken_back_just_before_the_role_is_given_up_does_not_happen(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun(on_record, one, two)
        register = one.controller.register
        assert register is not None
        release, is_over = register.release, asyncio.Event()

        async def too_late(*words: Any, **more: Any) -> bool:
            await on_record.register.drop_switch(await on_record.register.view(), "ops", has_not_begun=True)
            is_over.set()
            return await release(*words, **more)

        register.release = too_late  # type: ignore[method-assign]
        await ask_for(on_record, 2)
        await is_over.wait()
        await until(lambda: takes_messages(one))
        await send(one, 5)
        assert ((await on_record.term()).epoch, is_slave(two)) == (1, True)
