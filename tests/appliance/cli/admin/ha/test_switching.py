"""A switch that was asked for does not outlive the command that asked."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from appliance.cli.admin.ha import looking
from appliance.cli.admin.ha.switching import until_switched
from appliance.failover.view import Switch, TermState
from appliance.register.etcd import EtcdClient, EtcdError, OutcomeUnknown
from appliance.register.register import Refused, Register
from appliance.register.term import IN_SYNC, Term, View
from gantrymq.errors import ConfigError, GantryError

ONE, TWO = "10.0.0.1:10911", "10.0.0.2:10911"
TERM = Term(3, "three", ONE, (ONE, TWO), IN_SYNC)
NEXT = Term(4, "four", TWO, (TWO,), IN_SYNC)
SWITCH = Switch("x", 2, False, 0, 3, 7, 8)
SILENT = EtcdError("no member of etcd answers")


class Recorded(Register):
    """A record in memory. failures: of the next looks; on_look: what happens just before one."""

    def __init__(self, *failures: Exception, put: Exception | None = None) -> None:
        super().__init__(EtcdClient([]), "c", "b")
        self.found = View(TERM, 7)
        self.failures, self.put = list(failures), put
        self.dropped: list[tuple[str, str]] = []
        self.on_look: Callable[[], None] = lambda: None

    async def view(self) -> View:
        await asyncio.sleep(0)
        if self.failures:
            raise self.failures.pop(0)
        self.on_look()
        return self.found

    async def switch(self, view: View, switch: Switch) -> None:
        if self.put is not None:
            raise self.put
        self.found = dataclasses.replace(self.found, switch=switch)

    async def drop_switch(self, view: View, reason: str, asked: str = "", *, has_not_begun: bool = False) -> None:
        assert has_not_begun
        self.dropped.append((asked, reason))
        self.found = dataclasses.replace(self.found, switch=None)

    async def asked(self, within_s: float) -> Term:
        return await until_switched(self, self.found, SWITCH, TWO, within_s)


def take_over(register: Recorded, term: Term = NEXT) -> Callable[[], None]:
    return lambda: setattr(register, "found", View(term, 9))


def elsewhere(register: Recorded) -> Callable[[], None]:
    return lambda: setattr(register, "found", View(TERM, 7, cluster_id=8))


async def test_a_look_that_etcd_does_not_answer_does_not_end_the_waiting() -> None:
    register = Recorded(SILENT)
    register.on_look = take_over(register)
    assert await register.asked(30.0) == NEXT
    assert not register.dropped


async def test_the_record_of_another_etcd_does_not_say_that_it_has_happened() -> None:
    register, looks = Recorded(), iter([View(NEXT, 9, cluster_id=8), View(TERM, 7), View(NEXT, 9)])
    seen = list[View]()

    def look() -> None:
        register.found = next(looks)
        seen.append(register.found)

    register.on_look = look
    assert await register.asked(30.0) == NEXT
    assert len(seen) == 3


async def test_nothing_is_dropped_in_another_etcd_and_it_is_not_told_to_be_cancelled() -> None:
    register = Recorded()
    register.on_look = elsewhere(register)
    with pytest.raises(GantryError, match=r"is not known, .* another cluster of etcd answers"):
        await register.asked(0.0)
    assert not register.dropped


async def test_another_etcd_does_not_say_whether_the_master_renews(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "FRESH_S", 0.0)
    register = Recorded()
    seen = looking.Seen(register, register.found, [])
    assert not await looking.has_renewed(seen)
    register.on_look = elsewhere(register)
    with pytest.raises(ConfigError, match="another cluster of etcd answers"):
        await looking.has_renewed(seen)


@pytest.mark.parametrize("put", [None, OutcomeUnknown("etcd may have done it")], ids=["put", "outcome unknown"])
async def test_a_switch_that_has_not_happened_in_time_is_dropped_and_can_not_come_any_more(
    put: Exception | None,
) -> None:
    register, text = Recorded(put=put), f"{TWO} has not become the master within 0 s"
    with pytest.raises(GantryError, match=f"{text}: the switchover is cancelled"):
        await register.asked(0.0)
    assert register.dropped == [("x", text)]


async def test_a_command_that_is_interrupted_drops_its_switch() -> None:
    register = Recorded()
    looked = asyncio.Event()
    register.on_look = looked.set
    waiting = asyncio.ensure_future(register.asked(30.0))
    await looked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert register.dropped == [("x", "the command was interrupted")]


async def test_it_says_that_the_switch_may_still_be_there_when_etcd_does_not_answer() -> None:
    register = Recorded(*[SILENT] * 9)
    with pytest.raises(GantryError, match="whether the switchover is cancelled is not known"):
        await register.asked(0.0)


async def test_a_master_that_begins_at_the_last_moment_is_named() -> None:
    register = Recorded(SILENT)
    register.on_look = take_over(register)
    with pytest.raises(GantryError, match=f"meanwhile {TWO} has begun epoch 4"):
        await register.asked(0.0)
    assert not register.dropped


async def test_a_switchover_whose_master_has_given_up_its_role_is_not_told_to_be_cancelled() -> None:
    register = Recorded()
    released = dataclasses.replace(TERM, state=TermState.RELEASED, end=500)
    register.on_look = lambda: setattr(register, "found", dataclasses.replace(register.found, term=released))
    with pytest.raises(GantryError, match=f"meanwhile {ONE} has given up its role"):
        await until_switched(register, register.found, SWITCH._replace(is_planned=True), TWO, 0.0)
    assert not register.dropped


async def test_nothing_is_dropped_that_another_has_asked_for() -> None:
    register = Recorded()
    other = dataclasses.replace(register.found, switch=SWITCH._replace(id="another"))
    register.on_look = lambda: setattr(register, "found", other)
    with pytest.raises(GantryError):
        await register.asked(0.0)
    assert not register.dropped


async def test_what_was_refused_is_not_dropped() -> None:
    register = Recorded(put=Refused("failover is paused"))
    with pytest.raises(Refused):
        await register.asked(30.0)
    assert not register.dropped


async def test_a_master_that_opens_is_waited_for() -> None:
    register = Recorded()
    opening = dataclasses.replace(NEXT, state=TermState.OPENING)
    states = [opening, opening, NEXT]
    register.on_look = lambda: take_over(register, states.pop(0))()
    assert await register.asked(30.0) == NEXT
