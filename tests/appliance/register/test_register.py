"""The register with a real etcd: numbers are given out once, sets follow their owner, and who is late is told so."""

from __future__ import annotations

import asyncio
import signal
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from appliance.failover.view import Beat, Holder, Switch, TermState
from appliance.register.etcd import EtcdClient, EtcdError, OutcomeUnknown, endpoints_of
from appliance.register.register import HISTORY_MAX, Refused, Register, TakenBack
from appliance.register.term import IN_SYNC, LOCAL, Term, View
from tests.servers.etcd import EtcdMember, etcd

pytestmark = pytest.mark.usefixtures("patient_clients")
NAMES = count()
ONE, TWO, THREE = "127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"


@pytest.fixture
def name() -> str:
    return f"broker/{next(NAMES)} ü"  # whatever a broker is called


@pytest.fixture
def register(member: EtcdMember, name: str) -> Register:
    return Register(EtcdClient(endpoints_of(member.url)), "cluster", name)


@pytest.fixture
def another(member: EtcdMember, name: str) -> Register:
    """Of another process."""
    return Register(EtcdClient(endpoints_of(member.url)), "cluster", name)


async def test_before_init_nothing_is_given_out(register: Register) -> None:
    assert (await register.view()).term is None
    for asked in (
        register.take_over(await register.view(), ONE, above=0, start=0, reason="promote"),
        register.publish(1, "id", ONE, [], LOCAL),
        register.adopt(await register.view(), 1, "id", ONE),
    ):
        with pytest.raises(Refused, match="ha init"):
            await asked


async def test_the_first_epoch_of_a_name_begins_the_record_when_that_is_asked_for(register: Register) -> None:
    view = await register.view()
    term = await register.take_over(view, ONE, above=3, start=900, reason="promote --from-apache", is_first=True)
    assert (term.epoch, (await register.view()).term) == (4, term)
    with pytest.raises(Refused, match=f"epoch 4 of {ONE}"):
        await register.take_over(view, TWO, above=3, start=900, reason="promote --from-apache", is_first=True)


async def test_the_record_begins_once(register: Register) -> None:
    await register.init(4, "id", ONE)
    view = await register.view()
    assert view.term == Term(4, "id", ONE, (ONE,), LOCAL)
    assert [(row.epoch, row.reason, row.start) for row in view.history] == [(4, "init", -1)]
    with pytest.raises(Refused, match=f"epoch 4 of {ONE}"):
        await register.init(9, "other", TWO)


async def test_of_two_that_ask_for_the_next_epoch_one_gets_it(register: Register) -> None:
    await register.init(1, "id", ONE)
    view = await register.view()
    asked = [register.take_over(view, owner, above=0, start=7, reason="promote") for owner in (TWO, THREE) * 5]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    won = [answer for answer in answers if isinstance(answer, Term)]
    assert len(won) == 1 and won[0].epoch == 2
    assert all(isinstance(answer, Refused) for answer in answers if answer is not won[0])
    assert (await register.view()).term == won[0]
    later = await register.take_over(await register.view(), ONE, above=6, start=9, reason="promote")
    assert later.epoch == 7 and later.id != won[0].id
    assert [row.epoch for row in (await register.view()).history] == [1, 2, 7]


async def test_a_set_that_was_published_in_between_takes_the_number_away(register: Register) -> None:
    """The slave was in the set when it looked; its master let it leave before it asked."""
    await register.init(1, "id", ONE)
    await register.publish(1, "id", ONE, [TWO], IN_SYNC)
    view = await register.view()
    assert view.term is not None and view.term.proves(TWO, 1, "id")
    await register.publish(1, "id", ONE, [], IN_SYNC)
    with pytest.raises(Refused):
        await register.take_over(view, TWO, above=0, start=7, reason="promote")
    assert (await register.view()).term == Term(1, "id", ONE, (ONE,), IN_SYNC)


async def test_a_master_whose_epoch_is_over_publishes_nothing_and_is_told_by_whom(register: Register) -> None:
    await register.init(1, "id", ONE)
    assert await register.publish(1, "id", ONE, [TWO], IN_SYNC) == Term(1, "id", ONE, (ONE, TWO), IN_SYNC)
    later = await register.take_over(await register.view(), TWO, above=0, start=7, reason="promote")
    assert await register.publish(1, "id", ONE, [TWO, THREE], IN_SYNC) == later
    assert (await register.view()).term == later


async def test_an_epoch_of_the_same_number_by_another_is_not_ones_own(register: Register) -> None:
    await register.init(2, "theirs", ONE)
    assert (await register.publish(2, "ours", TWO, [], LOCAL)).owner == ONE


async def test_a_record_that_is_behind_its_brokers_is_adopted_by_hand(register: Register) -> None:
    await register.init(2, "id", ONE)
    with pytest.raises(Refused, match=f"epoch 2 of {ONE}"):
        await register.adopt(await register.view(), 1, "old", TWO)
    await register.adopt(await register.view(), 5, "restored", TWO)
    assert (await register.view()).term == Term(5, "restored", TWO, (TWO,), LOCAL)


async def test_removing_takes_this_name_alone(register: Register, member: EtcdMember, name: str) -> None:
    other = Register(EtcdClient(endpoints_of(member.url)), "cluster", f"{name}2")
    await register.init(1, "id", ONE)
    await other.init(1, "id", ONE)
    stale = await register.view()
    await register.publish(1, "id", ONE, [TWO], LOCAL)
    with pytest.raises(Refused, match="in the meantime"):
        await register.remove(stale)
    await register.remove(await register.view())
    assert (await register.view()).term is None and (await register.view()).history == ()
    assert (await other.view()).term is not None


async def test_the_history_is_bounded(register: Register) -> None:
    await register.init(1, "id", ONE)
    for _ in range(HISTORY_MAX + 5):
        await register.take_over(await register.view(), ONE, above=0, start=0, reason="promote")
    history = (await register.view()).history
    assert len(history) == HISTORY_MAX and history[-1].epoch == HISTORY_MAX + 6


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"epoch": 0, "id": "", "owner": "", "inSync": [], "level": "local"}',
        b'{"epoch": 1, "id": "a", "owner": "b", "inSync": [], "level": "in-sync-disk"}',  # what no master waits for
    ],
)
async def test_a_damaged_record_is_no_record_to_decide_by(register: Register, member: EtcdMember, data: bytes) -> None:
    await EtcdClient(endpoints_of(member.url)).change([], {register.prefix + "term": data})
    with pytest.raises(EtcdError, match="damaged"):
        await register.view()


async def test_each_store_gets_a_number_once_and_for_ever(register: Register) -> None:
    with pytest.raises(Refused, match="ha init"):
        await register.join("store one")
    await register.init(1, "id", ONE)
    group = (await register.view()).group
    assert await register.join("store one") == (group, 1)
    assert await register.join("store two") == (group, 2)
    assert await register.join("store one") == (group, 1)
    asked = [register.join(f"store {number}") for number in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    joined = [answer[1] for answer in answers if isinstance(answer, tuple)]
    assert joined and len(set(joined)) == len(joined)
    assert all(isinstance(answer, tuple | Refused) for answer in answers)


async def test_the_set_names_members_and_their_boots_while_they_have_all(register: Register) -> None:
    await register.init(1, "id", ONE)
    await register.join("store one")
    await register.join("store two")
    stores = {ONE: ("store one", "a"), TWO: ("store two", "b"), THREE: ("never joined", "c")}
    term = await register.publish(1, "id", ONE, [TWO, THREE], IN_SYNC, stores)
    assert term.holders == {ONE: Holder(1, "a"), TWO: Holder(2, "b")}
    assert (await register.view()).term == term
    assert (term.still_holds(TWO, "b"), term.still_holds(TWO, "c"), term.still_holds(THREE, "c")) == (True, False, None)
    term = await register.publish(1, "id", ONE, [TWO], IN_SYNC)  # nothing new of the boots
    assert term.holders == {ONE: Holder(1, "a"), TWO: Holder(2, "b")}
    term = await register.publish(1, "id", ONE, [], IN_SYNC)
    term = await register.publish(1, "id", ONE, [TWO], IN_SYNC)
    assert term.holders == {ONE: Holder(1, "a")}  # left: its boot counts again once it has all


async def test_a_record_of_before_groups_is_read_and_gets_one_by_the_first_to_join(
    register: Register, member: EtcdMember
) -> None:
    old = b'{"epoch": 4, "id": "id", "owner": "127.0.0.1:1", "inSync": ["127.0.0.1:1"], "level": "in-sync"}'
    await EtcdClient(endpoints_of(member.url)).change([], {register.prefix + "term": old})
    view = await register.view()
    assert view.term == Term(4, "id", ONE, (ONE,), IN_SYNC) and view.group == "" and not view.stores
    group, number = await register.join("store one")
    assert group and number == 1 and (await register.view()).group == group


async def test_another_groups_store_can_neither_read_nor_publish_nor_take_over(register: Register) -> None:
    await register.init(1, "id", ONE)
    view = await register.view()
    register.group = "another"
    for asked in (register.view(), register.publish(1, "id", ONE, [], LOCAL), register.join("store")):
        with pytest.raises(Refused, match=f"of group {view.group}, and this store is of group another"):
            await asked


async def test_a_record_that_begins_anew_keeps_group_and_numbers(register: Register) -> None:
    await register.init(1, "id", ONE)
    group = (await register.view()).group
    await register.join("store one")
    await register.join("store two")
    await register.remove(await register.view())
    await register.init(1, "id", ONE, group)
    assert await register.join("store two", 2) == (group, 2)
    assert await register.join("store three") == (group, 1)
    assert await register.join("store one", 1) == (group, 3)  # taken meanwhile


class Unanswered(EtcdClient):
    """Its transactions are executed, or not, and their answers lost."""

    is_executed = True

    async def change(self, *arguments: Any, **further: Any) -> int | None:
        if self.is_executed:
            await super().change(*arguments, **further)
        raise OutcomeUnknown("no answer")


async def test_an_answer_that_is_lost_is_read_back(register: Register, member: EtcdMember, name: str) -> None:
    await register.init(1, "id", ONE)
    client = Unanswered(endpoints_of(member.url))
    unlucky = Register(client, "cluster", name)
    term = await unlucky.take_over(await unlucky.view(), TWO, above=0, start=7, reason="promote")
    assert (await register.view()).term == term
    assert (await unlucky.publish(term.epoch, term.id, TWO, [ONE], IN_SYNC)).in_sync == (ONE, TWO)
    group = (await register.view()).group
    assert await unlucky.join("store") == (group, 1)
    client.is_executed = False
    with pytest.raises(OutcomeUnknown):
        await unlucky.join("another store")
    with pytest.raises(OutcomeUnknown):
        await unlucky.publish(term.epoch, term.id, TWO, [], IN_SYNC)
    with pytest.raises(OutcomeUnknown):  # to prevent that one, the set on record is sent again, in vain
        await unlucky.publish(term.epoch, term.id, TWO, [ONE], IN_SYNC)
    with pytest.raises(OutcomeUnknown):
        await unlucky.take_over(await unlucky.view(), ONE, above=0, start=9, reason="promote")


async def test_an_epoch_that_an_etcd_restored_meanwhile_has_is_not_taken(tmp_path: Path) -> None:
    """It has the revisions that are compared, and another id."""
    with etcd(tmp_path / "etcd") as (member,):
        register = Register(EtcdClient(endpoints_of(member.url)), "cluster", "broker")
        await register.init(1, "id", ONE)
        view = await register.view()
        member.begin_anew("another")
        with pytest.raises(OutcomeUnknown, match="another cluster of etcd answers"):
            await register.take_over(view, TWO, above=0, start=7, reason="promote")
        assert (await register.view()).is_restored


@pytest.mark.slow
async def test_without_etcd_a_set_stays_what_it_was_and_none_may_change(tmp_path: Path) -> None:
    with etcd(tmp_path) as (member,):
        register = Register(EtcdClient(endpoints_of(member.url), deadline_s=1), "cluster", "broker")
        await register.init(1, "id", ONE)
        await register.publish(1, "id", ONE, [TWO], IN_SYNC)
        member.signal(signal.SIGSTOP)
        assert (await register.publish(1, "id", ONE, [TWO], IN_SYNC)).in_sync == (ONE, TWO)
        with pytest.raises(EtcdError):
            await register.publish(1, "id", ONE, [], IN_SYNC)
        member.signal(signal.SIGCONT)
        assert (await register.publish(1, "id", ONE, [TWO], IN_SYNC)).in_sync == (ONE, TWO)


# -- whose epoch it is ------------------------------------------------------------------------------------------------


async def begun(register: Register, session: str) -> Register:
    """The record of a master of that session."""
    await register.init(1, "id", ONE)
    register.session = session
    await register.publish(1, "id", ONE, [TWO], IN_SYNC)
    return register


async def test_a_witness_releases_the_epoch_of_the_process_that_it_names_and_of_no_other(register: Register) -> None:
    await begun(register, "boot/ns/17/5/first")
    assert not await register.witness("boot/ns/17/50")
    assert not await register.witness("boot/ns/1")
    assert not await register.witness("")
    assert (await seen(register)).state is TermState.OPEN
    assert await register.witness("boot/ns/17/5")
    term = await seen(register)
    assert (term.state, term.in_sync, term.was_open) == (TermState.RELEASED, (ONE, TWO), True)


async def test_an_epoch_that_was_never_open_is_released_as_that(register: Register) -> None:
    register.session = "boot/ns/17/5/first"
    await register.init(1, "id", ONE)
    await register.take_over(await register.view(), TWO, above=1, start=7, reason="promote")
    assert await register.witness("boot/ns/17/5")
    assert not (await seen(register)).was_open


async def test_an_epoch_opens_once_its_owner_serves_with_its_set_on_record(register: Register) -> None:
    await begun(register, "first")
    term = await register.take_over(await register.view(), ONE, above=1, start=7, reason="promote")
    assert (await seen(register)).state is TermState.OPENING
    await register.publish(term.epoch, term.id, ONE, [TWO], IN_SYNC)
    assert (await seen(register)).state is TermState.OPEN


async def test_a_master_that_started_anew_is_not_taken_for_the_dead_one(register: Register, another: Register) -> None:
    await begun(register, "boot/ns/17/5/first")
    another.session = "boot/ns/18/9/second"
    await another.publish(1, "id", ONE, [TWO], IN_SYNC)
    assert not await register.witness("boot/ns/17/5")
    assert (await seen(register)).session == another.session


async def test_what_a_dead_process_sent_before_and_etcd_executes_later_changes_nothing(register: Register) -> None:
    await begun(register, "boot/ns/17/5/first")
    view = await register.view()
    await register.witness("boot/ns/17/5")
    assert await register.renew(Beat("beat", 1), view.term_revision, view.beat_revision, view.cluster_id) is None


async def test_a_process_that_was_replaced_or_gave_up_does_not_take_the_epoch_back_by_itself(
    register: Register, another: Register
) -> None:
    await begun(register, "first")
    assert await register.release(1, "id", 500)
    with pytest.raises(Refused, match="given up its role"):
        await register.publish(1, "id", ONE, [TWO], IN_SYNC)
    register.takes_back = True
    await register.publish(1, "id", ONE, [TWO], IN_SYNC)
    assert (await seen(register)).state is TermState.OPEN
    another.session = "second"
    await another.publish(1, "id", ONE, [TWO], IN_SYNC)
    with pytest.raises(Refused, match="another process has this epoch"):
        await register.publish(1, "id", ONE, [TWO], IN_SYNC)


async def seen(register: Register) -> Term:
    term = (await register.view()).term
    assert term is not None
    return term


LEFT = Switch("left", 2, False, 0, 1, 3)
OTHER = LEFT._replace(id="other")


async def test_an_unclean_switch_takes_the_place_of_one_that_was_left_behind(register: Register) -> None:
    await register.init(1, "id", ONE)
    before = await register.view()
    await register.switch(before, LEFT)
    for refused in (OTHER, OTHER._replace(is_planned=True)):
        with pytest.raises(Refused, match="a switchover is under way"):
            await register.switch(before, refused)  # it was not seen
    view = await register.view()
    with pytest.raises(Refused, match="a switchover is under way"):
        await register.switch(view, OTHER._replace(is_planned=True))
    await register.switch(view, OTHER)
    assert (await register.view()).switch == OTHER


async def test_a_switch_that_was_cancelled_before_etcd_has_it_does_not_come_any_more(register: Register) -> None:
    await register.init(1, "id", ONE)
    view = await register.view()
    await register.drop_switch(view, "interrupted", LEFT.id)
    with pytest.raises(Refused):
        await register.switch(view, LEFT)
    assert (await register.view()).cancelled == (LEFT.id, "interrupted")
    await register.switch(await register.view(), OTHER)
    assert (await register.view()).cancelled == ("", "")


async def test_a_role_is_not_given_up_for_a_switch_that_was_taken_back(register: Register) -> None:
    await register.init(1, "id", ONE)
    await register.switch(await register.view(), OTHER)
    seen_before, look = [await register.view()], register.view
    await register.drop_switch(seen_before[0], "ops has cancelled it", has_not_begun=True)

    async def late() -> View:
        """The release was about to be sent when the switch went."""
        return seen_before.pop() if seen_before else await look()

    register.view = late  # type: ignore[method-assign]
    with pytest.raises(TakenBack):
        await register.release(1, "id", 100, switch=OTHER.id)
    assert not seen_before
    assert (await seen(register)).state is TermState.OPEN


async def test_a_switch_is_not_taken_back_once_the_role_was_given_up_for_it(register: Register) -> None:
    await register.init(1, "id", ONE)
    await register.switch(await register.view(), OTHER)
    before = await register.view()
    assert await register.release(1, "id", 100, switch=OTHER.id)
    with pytest.raises(Refused):
        await register.drop_switch(before, "ops has cancelled it", has_not_begun=True)
    assert (await register.view()).switch == OTHER
