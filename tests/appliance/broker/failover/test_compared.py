"""A slave that starts compares its log with what etcd was told of it, before it tells anything and before all else."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.broker.epochs.history import Epoch, Epochs
from appliance.broker.epochs.membership import Membership
from appliance.broker.epochs.standing import Rival, Standing
from appliance.broker.epochs.turns import Cut, Turns
from appliance.broker.failover.candidate import Candidate
from appliance.broker.failover.on_record import Seen
from appliance.broker.replication.in_sync_file import InSyncRecord
from appliance.failover.own import Doubt
from appliance.failover.view import Beat, Figures, Holder
from appliance.process.process_identity import new_session
from appliance.register.etcd import EtcdClient
from appliance.register.register import Register
from appliance.register.term import IN_SYNC, Term, View
from appliance.settings.roles import BrokerConfig

ONE, TWO = "10.0.0.1:1", "10.0.0.2:1"
END, TOLD = 490, 500
TERM = Term(4, "four", ONE, (ONE, TWO), IN_SYNC, {ONE: Holder(1, "a"), TWO: Holder(2, "b")}, session="first")
FIGURES = Figures(TWO, "b", 4, TOLD, TOLD, is_healthy=True)
OWN_RECORD = View(
    TERM, 7, group="g", stores={"s1": 1, "s2": 2}, cluster_id=8, adopted_cluster_id=8, figures={2: (9, FIGURES)}
)
RESTORED = View(TERM, 7, group="g", stores={"s1": 1, "s2": 2}, cluster_id=9, adopted_cluster_id=8)  # before it told


class Recorded(Register):
    """Looks, one after the other; the last one stays."""

    def __init__(self, *looks: View) -> None:
        super().__init__(EtcdClient([]), "c", "b")
        self.looks, self.told, self.said = list(looks), list[int](), list[Figures]()

    async def view(self) -> View:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    async def tell(self, number: int, figures: Figures, view: View) -> bool:
        self.told.append(view.cluster_id)
        self.said.append(figures)
        return True


class Slave:
    """A candidate with what it uses of its broker. end: of its log."""

    def __init__(
        self,
        *looks: View,
        end: int = END,
        boot: str = "b",
        rival: Rival | None = None,
        doubt: Doubt = Doubt.NONE,
    ) -> None:
        self.doubted: list[Doubt] = []
        self.register, self.turns = Recorded(*looks), Turns()
        self.store = SimpleNamespace(max_physical_offset=end, flags=0)
        epochs = Epochs((Epoch(4, 0, "four"),), 4, "four")
        parts: Any = SimpleNamespace(
            config=BrokerConfig(),
            store=self.store,
            standing=SimpleNamespace(standing=Standing(epochs, rival=rival)),
            member=SimpleNamespace(
                membership=Membership("s2", "g", 2, boot, "machine", doubt=doubt), doubted=self.doubted.append
            ),
            in_sync_file=SimpleNamespace(record=InSyncRecord()),
            turns=self.turns,
            seen=Seen(),
            session=new_session(),
        )
        client: Any = SimpleNamespace(master_end=-1)
        master: Any = SimpleNamespace(on_record=lambda *at: None)
        self.candidate = Candidate(parts, self.register, client, master, TWO)

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self.candidate.look()

    @property
    def is_found(self) -> bool:
        return isinstance(self.turns.turn, Cut)


async def test_an_older_copy_is_told_to_be_one_once_it_is_open_again() -> None:
    slave = Slave(OWN_RECORD)
    await slave.look()
    assert slave.doubted == [Doubt.OLDER]
    again = Slave(OWN_RECORD, boot="a new one", doubt=Doubt.OLDER)
    await again.look(2)
    assert "the store of member 2 is an older copy" in again.candidate.refusal and not again.is_found


@pytest.mark.parametrize("end", [END, TOLD])
async def test_a_log_that_was_longer_is_cut_before_it_is_told_of(end: int) -> None:
    slave = Slave(OWN_RECORD, end=end)
    await slave.look(3)
    assert (slave.is_found, slave.register.told != []) == (end < TOLD, end == TOLD)


async def test_what_an_etcd_answers_that_was_restored_does_not_count_for_a_comparison() -> None:
    slave = Slave(RESTORED, RESTORED, OWN_RECORD)
    await slave.look(2)
    assert "restored from a backup" in slave.candidate.refusal
    assert slave.register.told == [9]  # for people, and only there
    await slave.look()
    assert slave.is_found and slave.register.told == [9]


async def test_the_log_is_compared_as_it_was_before_it_copied_more() -> None:
    """etcd answers late, and the master has sent the part that was lost by then."""
    slave = Slave(OWN_RECORD)
    slave.store.max_physical_offset = TOLD + 10
    await slave.look()
    assert slave.turns.turn == Cut(TOLD + 10)


async def test_it_is_compared_until_etcd_has_what_it_tells() -> None:
    """A term that has changed refuses that, and may show more. What it has told is of a log that may have grown."""
    nothing = dataclasses.replace(OWN_RECORD, figures={})
    slave = Slave(nothing, nothing, OWN_RECORD)
    await slave.look(2)
    assert not slave.is_found
    await slave.look()
    assert slave.is_found
    slave = Slave(nothing, OWN_RECORD)
    said = FIGURES._replace(session=slave.candidate.own().session)
    slave.register.looks[1] = dataclasses.replace(OWN_RECORD, figures={2: (9, said)})
    await slave.look(2)
    assert not slave.is_found and slave.register.told


async def test_another_reason_not_to_take_over_is_told_with_the_next_look_and_the_same_one_is_not() -> None:
    """Else the members in sync stand beside one that says that it is none of them."""
    both = dataclasses.replace(OWN_RECORD, beat=Beat("first", 1, 5.0), beat_revision=8)
    alone = dataclasses.replace(both, term=dataclasses.replace(TERM, in_sync=(ONE,)))
    slave = Slave(alone, alone, alone, both, end=TOLD)
    await slave.look(3)
    assert ["is not in sync" in each.refusal for each in slave.register.said] == [True]
    await slave.look(3)
    assert ["is not in sync" in each.refusal for each in slave.register.said] == [True, False]


@pytest.mark.parametrize(("epoch", "known"), [(4, TOLD), (3, END)])
async def test_one_whose_machine_lost_the_end_of_its_log_goes_on_telling_how_long_it_was(
    epoch: int, known: int
) -> None:
    """In the epoch on record: of another one it says nothing any more."""
    figures = {2: (9, FIGURES._replace(epoch=epoch))}
    slave = Slave(dataclasses.replace(OWN_RECORD, figures=figures), boot="after a power cut")
    await slave.look(2)
    (said,) = slave.register.said
    assert (said.log_end, said.known_epoch, said.known_end) == (END, 4, known)


async def test_one_that_has_a_rival_says_so_to_etcd_after_a_restart() -> None:
    slave = Slave(OWN_RECORD, end=TOLD, rival=Rival(4, "another", ONE))
    await slave.look(2)
    assert "begun twice" in slave.candidate.why_never
    assert slave.register.told == [8]


async def test_one_that_has_a_rival_is_compared_too() -> None:
    slave = Slave(OWN_RECORD, rival=Rival(4, "another", ONE))
    await slave.look(2)
    assert slave.is_found and slave.register.told == []


def told(revision: int, session: str, boot: str = "b") -> View:
    said = FIGURES._replace(log_end=END, session=session, boot=boot)
    return dataclasses.replace(OWN_RECORD, figures={2: (revision, said)})


async def test_a_copy_that_runs_beside_its_original_gets_a_boot_of_its_own_and_tells_nothing() -> None:
    slave = Slave(told(9, "another"), told(11, "another"), told(13, "another"))
    await slave.look(2)
    assert not slave.is_found and slave.candidate.own().is_twice  # one word may be late
    await slave.look(2)
    assert slave.is_found and slave.doubted == [Doubt.COPY] and slave.register.told == []
    assert "runs beside" in slave.candidate.why_never


async def test_with_boots_of_their_own_neither_of_two_is_cut_and_both_refuse() -> None:
    slave = Slave(told(9, "another", "b2"), told(11, "another", "b2"))
    await slave.look(3)
    assert not slave.is_found and slave.candidate.own().is_twice
