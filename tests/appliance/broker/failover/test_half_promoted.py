"""A promotion by hand that etcd has on record, and that its broker has not begun: it was killed, or had no answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from appliance.broker.epochs.turns import Cut
from appliance.broker.life import BrokerLife
from appliance.failover.view import Pause, TermState
from appliance.register.etcd import EtcdError, OutcomeUnknown
from appliance.register.register import Refused
from appliance.register.term import Term, View
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.failover.automatic import begun_with_copies, die, master_of, member, reason
from tests.appliance.broker.replication.brokers import is_slave, promote, same_logs, send
from tests.appliance.broker.replication.pair import follower_of
from tests.appliance.broker.replication.recorded import OnRecord, takes_messages
from tests.waiting import until

pytestmark = pytest.mark.slow
WHILE_PAUSED = Pause("ops", "disks are replaced", 0, 0)


def executed_alone(broker: BrokerLife, *, then_fails: bool = False) -> asyncio.Event:
    """Have etcd execute the broker's promotion, and the broker stand still then, or hear of no answer."""
    register, executed = broker.controller.register, asyncio.Event()
    assert register is not None
    take_over = register.take_over

    async def take_over_alone(*words: Any, **more: Any) -> Term:
        await take_over(*words, **more)
        executed.set()
        if not then_fails:
            await asyncio.Event().wait()
        raise OutcomeUnknown("etcd has an election")

    register.take_over = take_over_alone  # type: ignore[method-assign]
    return executed


async def test_a_promotion_whose_answer_was_lost_is_begun_all_the_same(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            await on_record.register.pause(await on_record.register.view(), WHILE_PAUSED)
            die(one)
        executed_alone(two, then_fails=True)
        answer = await promote(two)
        assert answer.code != 0 and "not known, `gantry admin ha status` tells" in (answer.remark or "")
        await until(lambda: takes_messages(two))
        assert (await on_record.term()).epoch == 2


async def test_it_is_begun_also_by_a_broker_that_reopens_first(on_record: OnRecord) -> None:
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two) as one:
            die(one)
        before = two.controller
        executed, asked = executed_alone(two), asyncio.create_task(promote(two))
        await executed.wait()
        before.turns.ask(Cut(before.store.max_physical_offset))
        await asyncio.gather(asked, return_exceptions=True)
        await until(lambda: takes_messages(two) and two.controller is not before)
        assert (await on_record.term()).epoch == 2


async def test_a_master_that_handed_over_waits_until_the_promotion_is_known_to_be_executed(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun_with_copies(on_record, one, two)
        executed_alone(two, then_fails=True)
        register = two.controller.register
        assert register is not None
        take_over, view = register.take_over, register.view

        async def unseen(*words: Any, **more: Any) -> Term:
            try:
                return await take_over(*words, **more)
            finally:
                register.view = unanswered  # type: ignore[method-assign]

        register.take_over = unseen  # type: ignore[method-assign]
        answer = await switched(one, two)
        assert answer.code != 0 and two.controller.turns.may_begin_epoch
        register.view = view  # type: ignore[method-assign]
        await until(lambda: takes_messages(two) and is_slave(one))
        assert (await on_record.term()).epoch == 2


async def test_a_promotion_is_not_executed_once_the_master_that_handed_over_goes_on(on_record: OnRecord) -> None:
    async with member(on_record, "one", 0) as one, member(on_record, "two", 1) as two:
        await begun_with_copies(on_record, one, two)
        register, asked = two.controller.register, []
        assert register is not None
        take_over = register.take_over

        async def take_over_late(*words: Any, **more: Any) -> Term:
            asked.append(take_over(*words, **more))
            raise OutcomeUnknown("etcd has an election")

        register.take_over = take_over_late  # type: ignore[method-assign]
        answer = await switched(one, two)
        assert answer.code != 0 and "not known" in (answer.remark or "")
        await until(lambda: one.controller.standing.standing.handed_to is None)
        with pytest.raises(Refused, match="epoch 1 of"):
            await asked[0]
        one.controller.holding.end()
        await send(one, 5)
        await same_logs(one, two)


async def test_a_broker_killed_before_it_begins_its_promotion_is_the_master_once_it_is_back(
    on_record: OnRecord,
) -> None:
    async with member(on_record, "three", 2) as three:
        await half_promoted(on_record, three)
        async with member(on_record, "two", 1) as two:
            await until(lambda: takes_messages(two))
            assert (await on_record.term()).epoch == 3
            await send(two, 10)
            await same_logs(two, three)
            assert is_slave(three)


@pytest.mark.parametrize("is_witnessed", [False, True])
async def test_a_pause_holds_that_back_and_a_second_promotion_does_not_need_force(
    on_record: OnRecord, is_witnessed: bool
) -> None:
    async with member(on_record, "three", 2) as three:
        await half_promoted(on_record, three, stays_paused=True)
        if is_witnessed:  # by its supervisor
            assert await on_record.register.witness((await on_record.term()).session.rpartition("/")[0])
            assert (await on_record.term()).state is TermState.RELEASED
        async with member(on_record, "two", 1) as two:
            await until(lambda: "ops has paused failover" in reason(two))
            answer = await promote(two)
            assert answer.code == 0, answer.remark
            await until(lambda: takes_messages(two))
            await same_logs(two, three)


async def unanswered() -> View:
    raise EtcdError("etcd has an election")


async def test_nor_does_that_of_a_broker_that_has_not_joined(on_record: OnRecord) -> None:
    async with on_record.slave("two", 1) as two:
        async with on_record.master("one") as one:
            await on_record.begin_with_copies(one, two)
        view = await on_record.register.view()
        await on_record.register.take_over(view, two.controller.address, above=1, start=0, reason="promote")
        answer = await promote(two)
        assert answer.code == 0, answer.remark
        await until(lambda: takes_messages(two))


async def switched(master: BrokerLife, slave: BrokerLife) -> RemotingCommand:
    """The answer of the slave to the second request of a switchover."""
    await until(lambda: follower_of(slave.controller).sink.has_tables)
    master.controller.holding.begin(60)
    return await promote(slave, planned="true")


async def half_promoted(on_record: OnRecord, three: BrokerLife, *, stays_paused: bool = False) -> None:
    """The master and the slave that was promoted are gone; etcd has the latter's epoch on record."""
    async with member(on_record, "two", 1) as two:
        async with master_of(on_record, two, three) as one:
            await on_record.register.pause(await on_record.register.view(), WHILE_PAUSED)
            die(one)
        executed, asked = executed_alone(two), asyncio.create_task(promote(two))
        await executed.wait()
    await asyncio.gather(asked, return_exceptions=True)
    view = await on_record.register.view()
    assert view.term is not None
    assert (view.term.epoch, view.term.owner, view.term.state) == (2, two.controller.address, TermState.OPENING)
    if not stays_paused:
        await on_record.register.resume(view)
