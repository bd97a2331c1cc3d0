"""The register's rules, each left out in turn: then what goes wrong is seen, so these checks are worth something.

Each history asserts what must hold for anyone who reads etcd; it passes with the rules as they are, and fails with its
mutant.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import pytest

from appliance.failover.view import Holder
from appliance.register import register as register_module
from appliance.register.etcd import EtcdClient, EtcdError, Is, OutcomeUnknown, endpoints_of
from appliance.register.register import Refused, Register
from appliance.register.term import IN_SYNC, Term, View
from tests.appliance.register.wrong_registers import AnyGroup, Forgetful
from tests.servers.etcd import EtcdMember

pytestmark = pytest.mark.usefixtures("patient_clients")
NAMES = count()
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"


class Client(EtcdClient):
    """loses_answer: of the next transaction, which is executed. keeps: the next is on its way until `late`."""

    loses_answer = keeps = False
    kept: tuple[Sequence[Is], Mapping[str, bytes], Sequence[str]] = ((), {}, ())

    async def late(self) -> None:
        """What was kept arrives."""
        await super().change(*self.kept)

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        if self.keeps:
            self.keeps, self.kept = False, (compare, puts, deletes)
            raise OutcomeUnknown("no answer")
        revision = await super().change(compare, puts, deletes, cluster_id=cluster_id)
        if self.loses_answer:
            self.loses_answer = False
            raise OutcomeUnknown("no answer")
        return revision


class NoCompare(Client):
    """Puts whatever stands there."""

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        return await super().change([], puts, deletes, cluster_id=cluster_id)


class LostIsFailed(Client):
    """Takes a lost answer for "not executed"."""

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        try:
            return await super().change(compare, puts, deletes, cluster_id=cluster_id)
        except OutcomeUnknown:
            return None


class Rules(NamedTuple):
    client: type[Client] = Client
    register: type[Register] = Register


class Told:
    """One broker name in etcd, and registers of several brokers."""

    def __init__(self, url: str, rules: Rules) -> None:
        self._url, self._rules, self._name = url, rules, f"broker {next(NAMES)}"
        self.true = Register(Client(endpoints_of(url)), "cluster", self._name)

    def broker(self) -> tuple[Register, Client]:
        client = self._rules.client(endpoints_of(self._url))
        return self._rules.register(client, "cluster", self._name), client

    async def term(self) -> Term:
        term = (await self.true.view()).term
        assert term is not None
        return term


async def one_number_is_given_out_once(told: Told) -> None:
    (one, _), (two, _) = told.broker(), told.broker()
    await told.true.init(1, "id", ONE)
    seen = await told.true.view()
    given = [await one.take_over(seen, ONE, above=0, start=0, reason="promote")]
    with contextlib.suppress(EtcdError):
        given.append(await two.take_over(seen, TWO, above=0, start=0, reason="promote"))
    assert len({term.epoch for term in given}) == len(given)


async def who_left_the_set_takes_no_epoch(told: Told) -> None:
    (master, _), (slave, _) = told.broker(), told.broker()
    await told.true.init(1, "id", ONE)
    await master.publish(1, "id", ONE, [TWO], IN_SYNC)
    seen = await slave.view()
    await master.publish(1, "id", ONE, [], IN_SYNC)  # and acknowledges without it from now on
    with contextlib.suppress(EtcdError):
        await slave.take_over(seen, TWO, above=0, start=0, reason="promote")
    assert (await told.term()).owner == ONE


async def what_is_late_changes_no_set_that_is_on_record(told: Told) -> None:
    master, client = told.broker()
    await told.true.init(1, "id", ONE)
    await master.publish(1, "id", ONE, [], IN_SYNC)
    client.keeps = True
    with contextlib.suppress(OutcomeUnknown):
        await master.publish(1, "id", ONE, [TWO], IN_SYNC)
    await master.publish(1, "id", ONE, [], IN_SYNC)  # it is silent: messages are acknowledged without it from now on
    await client.late()
    assert TWO not in (await told.term()).in_sync


async def a_master_knows_its_own_epoch(told: Told) -> None:
    slave, client = told.broker()
    await told.true.init(1, "id", ONE)
    seen = await slave.view()
    client.loses_answer = True
    taken = None
    with contextlib.suppress(EtcdError):
        taken = await slave.take_over(seen, TWO, above=0, start=0, reason="promote")
    assert (await told.term()).owner != TWO or taken == await told.term()  # else the epoch has no master


async def a_number_is_of_one_store(told: Told) -> None:
    (one, _), (two, _) = told.broker(), told.broker()
    await told.true.init(1, "id", ONE)
    old = await two.view()
    two.view = lambda: _value(old)  # type: ignore[method-assign] # it looked before the other joined
    given = [(await one.join("store one"))[1]]
    with contextlib.suppress(EtcdError):
        given.append((await two.join("store two"))[1])
    assert len(set(given)) == len(given)


async def another_groups_store_changes_nothing(told: Told) -> None:
    stranger, _ = told.broker()
    await told.true.init(1, "id", ONE)
    before = await told.term()
    stranger.group = "another"
    with contextlib.suppress(Refused):
        await stranger.publish(1, "id", ONE, [TWO], IN_SYNC)
    assert await told.term() == before


async def a_boot_on_record_is_of_a_member_that_has_all(told: Told) -> None:
    master, _ = told.broker()
    await told.true.init(1, "id", ONE)
    await master.join("store two")
    await master.publish(1, "id", ONE, [TWO], IN_SYNC, {TWO: ("store two", "first boot")})
    await master.publish(1, "id", ONE, [TWO], IN_SYNC, {})  # it is back after a power cut, and has not caught up
    assert not (await told.term()).still_holds(TWO, "second boot")
    assert (await told.term()).holders[TWO].boot == "first boot"


async def a_stranger_inherits_no_holder(told: Told) -> None:
    master, _ = told.broker()
    await told.true.init(1, "id", ONE)
    await master.join("store two")
    await master.publish(1, "id", ONE, [TWO], IN_SYNC, {TWO: ("store two", "boot")})
    await master.publish(1, "id", ONE, [TWO], IN_SYNC, {TWO: ("a store that has not joined", "its boot")})
    assert TWO not in (await told.term()).holders  # the store of before would win with the log of then


async def _value(view: View) -> View:
    return view


def _holders_of_anyone(
    view: View, epoch: int, epoch_id: str, members: Collection[str], stores: Mapping[str, tuple[str, str]]
) -> dict[str, Holder]:
    """Takes each member of the set for one of now."""
    return {at: Holder(number, "second boot") for at in members for number in view.stores.values()}


HISTORIES: dict[Callable[[Told], Awaitable[None]], Rules] = {
    one_number_is_given_out_once: Rules(client=NoCompare),
    who_left_the_set_takes_no_epoch: Rules(client=NoCompare),
    what_is_late_changes_no_set_that_is_on_record: Rules(register=Forgetful),
    a_master_knows_its_own_epoch: Rules(client=LostIsFailed),
    a_number_is_of_one_store: Rules(client=NoCompare),
    another_groups_store_changes_nothing: Rules(register=AnyGroup),
}
EACH = pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)


@EACH
async def test_with_all_rules_it_holds(member: EtcdMember, history: Callable[[Told], Awaitable[None]]) -> None:
    await history(Told(member.url, Rules()))


@EACH
async def test_without_its_rule_it_is_seen_to_fail(
    member: EtcdMember, history: Callable[[Told], Awaitable[None]]
) -> None:
    with pytest.raises(AssertionError):
        await history(Told(member.url, HISTORIES[history]))


async def test_a_store_that_has_not_joined_is_no_member(member: EtcdMember, monkeypatch: pytest.MonkeyPatch) -> None:
    await a_stranger_inherits_no_holder(Told(member.url, Rules()))
    monkeypatch.setattr(register_module, "holders_of", _holders_of_anyone)
    with pytest.raises(AssertionError):
        await a_stranger_inherits_no_holder(Told(member.url, Rules()))


async def test_a_boot_is_put_on_record_only_for_who_has_all(
    member: EtcdMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_boot_on_record_is_of_a_member_that_has_all(Told(member.url, Rules()))
    monkeypatch.setattr(register_module, "holders_of", _holders_of_anyone)
    with pytest.raises(AssertionError):
        await a_boot_on_record_is_of_a_member_that_has_all(Told(member.url, Rules()))
