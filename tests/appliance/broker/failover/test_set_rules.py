"""The broker's in-sync set and the rules that are simulated (failover/in_sync_rules.py), driven by the same histories.

A real SlaveService, PublishedSet and Register stand before an etcd that loses answers, executes late, or is silent.
Each set that they send has to be one that the rules allow, and nobody that the rules require may be let go.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from appliance.broker.epochs.membership import Membership
from appliance.broker.replication.in_sync import InSyncSet
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.replication.master.published_set import PublishedSet
from appliance.broker.replication.master.slave import Slave
from appliance.broker.replication.master.slave_figures import TransferRate
from appliance.broker.replication.master.slaves import SlaveService
from appliance.failover import in_sync_rules
from appliance.failover.own import Own, Role
from appliance.failover.view import Holder, TermState
from appliance.failover.view import Term as RuleTerm
from appliance.register.etcd import EtcdClient, EtcdError, Is, OutcomeUnknown, Snapshot, Value
from appliance.register.register import Register
from appliance.register.term import IN_SYNC, Term
from tests.appliance.register.wrong_registers import Forgetful

OWN, SLAVES = "127.0.0.1:1", ("127.0.0.1:2", "127.0.0.1:3")
HOLDERS = {at: Holder(number, "boot") for number, at in enumerate((OWN, *SLAVES), 1)}
NONE = frozenset[Holder]()
MASTER = Own(
    id=1, store_uuid="u1", group="g", boot="boot", session="", role=Role.MASTER, epoch=1, epoch_id="id", highest=1,
    log_end=0, dispatched_end=0, confirmed=0,
)  # fmt: skip
STEPS, SEEDS = 1000, 8


class Record(InSyncFile):
    """In memory."""

    def keep(self, record: InSyncRecord) -> None:
        self.record = record


class Hasty(PublishedSet):
    """Takes a set for published although that is not known."""

    async def keep(
        self,
        names: Collection[str],
        own_address: str,
        stores: Mapping[str, tuple[str, str]] | None = None,
        *,
        end: int = -1,
    ) -> bool:
        await super().keep(names, own_address, stores, end=end)
        return True


class Etcd(EtcdClient):
    """Its keys, here. fault: of the next transaction. late: those that it may still execute."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.revision, self.fault = 1, ""
        self.late: list[tuple[Sequence[Is], Mapping[str, bytes]]] = []
        self.group: Group | None = None

    async def read(self, prefix: str) -> Snapshot:
        if self.fault == "silent":
            raise EtcdError("no answer")
        values = {key.removeprefix(prefix): value for key, value in self.values.items()}
        return Snapshot(self.revision, values, 7)

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        if self.group is not None:
            self.group.check_sent(Term.from_json(next(iter(puts.values()))))
        fault, self.fault = self.fault, ""
        if fault == "late":
            self.late.append((compare, puts))
        is_done = fault != "late" and self.execute(compare, puts)
        if fault:
            self.fault = "silent" if fault == "lost, and silent" else ""
            raise OutcomeUnknown("no answer")
        return self.revision if is_done else None

    def execute(self, compare: Sequence[Is], puts: Mapping[str, bytes]) -> bool:
        if not self._compares(compare):
            return False
        self.revision += 1
        self.values.update({key: Value(data, self.revision) for key, data in puts.items()})
        return True

    def _compares(self, compare: Sequence[Is]) -> bool:
        return all(self.values.get(each.key, Value(b"", 0)).revision == each.revision for each in compare)

    def term(self) -> Term:
        return Term.from_json(next(iter(self.values.values())).data)

    def unsettled(self) -> frozenset[Holder]:
        """In sets that may still be executed."""
        sets = [Term.from_json(next(iter(puts.values()))) for compare, puts in self.late if self._compares(compare)]
        return frozenset(HOLDERS[at] for term in sets for at in term.in_sync)


class Group:
    """A master without a log, and slaves that say where they are. Time is counted here."""

    def __init__(self, seed: int, register: type[Register], published: type[PublishedSet]) -> None:
        self.rng, self.now, self.sent = random.Random(seed), 0.0, 0
        self.etcd, self.end, self.acknowledged = Etcd(), 0, dict.fromkeys(SLAVES, 0)
        self.register = register(self.etcd, "cluster", "broker")
        first = Term(1, "id", OWN, (OWN,), IN_SYNC, {OWN: HOLDERS[OWN]})
        self.etcd.values[self.register.prefix + "term"] = Value(first.to_json(), 1)
        for at, holder in HOLDERS.items():
            self.etcd.values[f"{self.register.prefix}ids/{holder.id}"] = Value(at.encode(), 1)
        self.etcd.group = self
        self.service = self._service(published)
        self.lost: frozenset[Holder] = NONE

    def _service(self, published: type[PublishedSet]) -> SlaveService:
        group = self

        class Store:
            @property
            def max_physical_offset(self) -> int:
                return group.end

            def require_copies(self, lacking: str) -> None: ...

        epochs = SimpleNamespace(current=1, current_id="id", history=[SimpleNamespace(start=0)])
        config: Any = SimpleNamespace(
            slave_timeout_ms=3000, is_sync_master=True, min_in_sync_replicas=1, all_ack_in_sync=True,
            in_sync_lag_ms=3000, read_confirmed_only=True, ha_housekeeping_ms=20_000,
        )  # fmt: skip
        standing: Any = SimpleNamespace(standing=SimpleNamespace(epochs=epochs))
        service = SlaveService(
            cast(Any, Store()),
            config,
            standing,
            state=cast(Any, SimpleNamespace(let_offsets_move=lambda until: None)),
            guard=cast(Any, SimpleNamespace(needs_greeting=False)),
            gate=cast(Any, SimpleNamespace(show=lambda end: None)),
            on_record=Record(Path()),
            member=cast(Any, SimpleNamespace(membership=Membership(store=OWN, boot="boot"))),
            published=published(self.register, config, standing, on_other=lambda term: pytest.fail(str(term))),
        )
        service.greeter.broker_address = OWN
        return service

    # -- what the rules say -------------------------------------------------------------------------------------------

    def required(self) -> frozenset[Holder]:
        return frozenset(HOLDERS[at] for at in (OWN, *self.service.required))

    def own(self, **more: Any) -> Own:
        assert self.service.in_sync is not None
        confirmed = self.service.in_sync.confirmed
        caught_up = frozenset(HOLDERS[at] for at, end in self.acknowledged.items() if end >= confirmed)
        known = {"required": self.required(), "caught_up": caught_up, "unsettled": self.etcd.unsettled()}
        return dataclasses.replace(MASTER, **known | more)

    def rule_term(self) -> RuleTerm:
        in_sync = frozenset(HOLDERS[at] for at in self.etcd.term().in_sync)
        return RuleTerm(1, "id", 1, OWN, "", TermState.OPEN, in_sync)

    def check_sent(self, term: Term) -> None:
        """The rules choose this set, too, when they are told of just those who enter or leave with it. Who has been put
        there by a late transaction may leave for a moment: it is required all the time."""
        self.sent += 1
        wanted, on_record = frozenset(HOLDERS[at] for at in term.in_sync), self.rule_term()
        own = self.own()
        own = dataclasses.replace(own, caught_up=own.caught_up & wanted, lost=(self.lost | on_record.in_sync) - wanted)
        chosen = in_sync_rules.to_publish(on_record, own)
        assert wanted == (on_record.in_sync if chosen is None else chosen), (wanted, on_record, own)

    def in_sync(self) -> InSyncSet:
        self.required()  # which makes it, the first time
        in_sync = self.service.in_sync
        assert in_sync is not None
        return in_sync

    async def look(self) -> None:
        before = self.required()
        self.lost = frozenset(HOLDERS[at] for at in self.in_sync().leaving(self.end, self.now))
        await self.service.look_who_is_in_sync(self.now)
        let_go = before - self.required()
        may_go = in_sync_rules.to_stop_requiring(self.rule_term(), self.own(required=before, lost=self.lost))
        assert let_go <= may_go, (let_go, may_go)
        self.check_required()

    def check_required(self) -> None:
        """Whoever is on record, or may come to be, is required."""
        found = in_sync_rules.to_require(self.rule_term(), self.own(caught_up=NONE))
        assert not found and self.etcd.unsettled() <= self.required(), (found, self.etcd.unsettled())

    # -- what happens -------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        rng, at = self.rng, self.rng.choice(SLAVES)
        self.now += rng.choice((0.1, 0.5, 1.0))
        self.end += rng.choice((0, 0, 10))
        match rng.choice(("here", "here", "here", "behind", "gone", "late", "fault", "well")):
            case "here":
                self.say(at, self.end)
            case "behind":
                self.say(at, self.acknowledged[at])
            case "gone":
                self.in_sync().gone(at, self.now)
                self.service.slaves = {slave for slave in self.service.slaves if slave.broker != at}
            case "late" if self.etcd.late:
                self.etcd.execute(*self.etcd.late.pop(0))
                self.check_required()
            case "fault":
                self.etcd.fault = rng.choice(("late", "late", "lost", "lost, and silent", "silent"))
            case "well":
                self.etcd.fault = ""
        await self.look()

    def say(self, at: str, end: int) -> None:
        slave = next((each for each in self.service.slaves if each.broker == at), None)
        if slave is None:
            slave = Slave(at, TransferRate(0.0), 1, at, at, "boot", told_at=1.0, tables=[])
            self.service.slaves.add(slave)
        slave.acknowledged = self.acknowledged[at] = end
        self.in_sync().acknowledged(at, end, self.end, self.now)


async def play(seed: int, register: type[Register] = Register, published: type[PublishedSet] = PublishedSet) -> Group:
    group = Group(seed, register, published)
    for _ in range(STEPS):
        await group.step()
    return group


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_master_changes_its_set_as_the_simulated_rules_allow(seed: int) -> None:
    assert (await play(seed)).sent > STEPS / 20


@pytest.mark.parametrize(("register", "published"), [(Forgetful, PublishedSet), (Register, Hasty)])
async def test_another_order_is_seen(register: type[Register], published: type[PublishedSet]) -> None:
    with pytest.raises(AssertionError):
        for seed in range(SEEDS):
            await play(seed, register, published)
