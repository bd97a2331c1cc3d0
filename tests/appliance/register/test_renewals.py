"""The beat with a real etcd: what it proves and until when, while etcd is frozen or gone, or answers are lost."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from appliance.failover.lease import deadline
from appliance.register.etcd import EtcdClient, Is, OutcomeUnknown, endpoints_of
from appliance.register.register import CLUSTER, Refused, Register
from appliance.register.renewals import Renewals
from appliance.register.term import IN_SYNC, Term
from tests.servers.etcd import EtcdMember, etcd
from tests.waiting import Clock, until

NAMES = count()
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"
LEASE_S = 3.0


@pytest.fixture
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdMember]:
    with etcd(tmp_path_factory.mktemp("etcd")) as (member,):
        yield member


class Client(EtcdClient):
    """loses: so many answers of the next transactions. is_executed: those whose answer is lost."""

    loses = 0
    is_executed = True

    async def change(
        self, compare: Sequence[Is], puts: Mapping[str, bytes], deletes: Sequence[str] = (), *, cluster_id: int = 0
    ) -> int | None:
        if self.loses:
            self.loses -= 1
            if self.is_executed:
                await super().change(compare, puts, deletes)
            raise OutcomeUnknown("no answer")
        return await super().change(compare, puts, deletes, cluster_id=cluster_id)


class Scene:
    """A record of epoch 1, and masters of it."""

    def __init__(self, url: str) -> None:
        self._url, self._name = url, f"broker {next(NAMES)}"
        self.clock = Clock(100.0)
        self.others: list[Term] = []
        self.is_healthy = True
        self.client, self.register = self.open()

    def open(self) -> tuple[Client, Register]:
        client = Client(endpoints_of(self._url), deadline_s=1)
        return client, Register(client, "cluster", self._name)

    def renewals(self, register: Register | None = None, group: Callable[[], str] = str) -> Renewals:
        found = Renewals(
            register or self.register,
            lease_s=LEASE_S,
            clock=self.clock,
            is_healthy=lambda: self.is_healthy,
            on_other=self.others.append,
            group=group,
        )
        found.epoch, found.epoch_id = 1, "id"  # as start() does; here the test makes the rounds
        return found


@pytest.fixture
async def scene(member: EtcdMember) -> Scene:
    scene = Scene(member.url)
    await scene.register.init(1, "id", ONE)
    return scene


async def test_a_renewal_proves_from_before_it_was_sent(scene: Scene) -> None:
    renewals = scene.renewals()
    assert renewals.until < scene.clock.now
    await renewals.round()
    assert renewals.until == deadline(100.0, LEASE_S) and renewals.why_not == ""
    scene.clock.now = 101.0
    await renewals.round()
    assert renewals.until == deadline(101.0, LEASE_S)
    view = await scene.register.view()
    assert view.beat is not None and view.beat == (renewals.session, 2, LEASE_S)


@pytest.mark.parametrize("is_executed", [True, False])
async def test_a_lost_answer_proves_from_the_first_sending_of_what_is_found(scene: Scene, is_executed: bool) -> None:
    renewals = scene.renewals()
    scene.client.loses, scene.client.is_executed = 1, is_executed
    await renewals.round()
    assert renewals.until == deadline(100.0, LEASE_S)


async def test_without_any_answer_nothing_is_proven_until_it_is_read_back(scene: Scene) -> None:
    renewals = scene.renewals()
    scene.client.loses = 1
    scene.register.view = _broken(scene.register, 3)  # type: ignore[method-assign]
    await renewals.round()
    assert renewals.until < scene.clock.now
    scene.clock.now = 102.0
    await renewals.round()
    assert renewals.until == deadline(102.0, LEASE_S)


def _broken(register: Register, times: int):  # type: ignore[no-untyped-def]
    """`view`, of which so many calls after the first end without an answer."""
    view, calls = register.view, count()

    async def look():  # type: ignore[no-untyped-def]
        if 0 < next(calls) < times:
            raise OutcomeUnknown("no answer")
        return await view()

    return look


async def test_a_change_of_the_set_does_not_end_the_proof(scene: Scene) -> None:
    renewals = scene.renewals()
    await renewals.round()
    await scene.register.publish(1, "id", ONE, [TWO], IN_SYNC)
    scene.clock.now = 101.0
    await renewals.round()
    assert renewals.until == deadline(101.0, LEASE_S)


async def test_a_later_epoch_ends_it_and_is_told(scene: Scene) -> None:
    renewals = scene.renewals()
    await renewals.round()
    later = await scene.register.take_over(await scene.register.view(), TWO, above=0, start=0, reason="promote")
    scene.clock.now = 101.0
    await renewals.round()
    assert renewals.until == deadline(100.0, LEASE_S)
    assert scene.others == [later] and "epoch 2" in renewals.why_not


async def test_of_two_processes_of_one_store_one_renews(scene: Scene) -> None:
    first, second = scene.renewals(), scene.renewals(scene.open()[1])
    await first.round()
    await second.round()  # the one of before is dead, as far as it knows
    proven = first.until
    for _ in range(3):
        scene.clock.now += 1
        await first.round()
        await second.round()
        assert first.until == proven and "another process" in first.why_not
        assert second.until == deadline(scene.clock.now, LEASE_S)
    await first.round()
    scene.clock.now += LEASE_S  # the second is dead now
    await first.round()
    assert first.until == deadline(scene.clock.now, LEASE_S)


@pytest.mark.slow
async def test_a_frozen_etcd_ends_the_proof_and_the_same_epoch_goes_on_afterwards(member: EtcdMember) -> None:
    scene = Scene(member.url)
    await scene.register.init(1, "id", ONE)
    renewals = Renewals(
        scene.register, lease_s=LEASE_S, clock=awake, is_healthy=lambda: scene.is_healthy, on_other=scene.others.append
    )
    renewals.start(1, "id")
    try:
        await until(lambda: renewals.until > awake())
        member.signal(signal.SIGSTOP)
        with _continued(member):
            await until(lambda: renewals.until < awake())
        await until(lambda: renewals.until > awake())
        scene.is_healthy = False  # its loop stands still
        await until(lambda: renewals.until < awake())
        assert "does not turn" in renewals.why_not
        scene.is_healthy = True
        await until(lambda: renewals.until > awake())
        term = (await scene.register.view()).term
        assert term is not None and term.is_of(1, "id") and not scene.others
        member.kill()
        await until(lambda: renewals.until < awake())
    finally:
        await asyncio.to_thread(renewals.stop)


def awake() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@contextlib.contextmanager
def _continued(member: EtcdMember) -> Iterator[None]:
    try:
        yield
    finally:
        member.signal(signal.SIGCONT)


@pytest.mark.parametrize("is_of_group", [False, True])
async def test_the_record_of_another_etcd_is_not_told_as_a_later_epoch(scene: Scene, is_of_group: bool) -> None:
    _, elsewhere = scene.open()
    view = await elsewhere.view()
    await elsewhere.adopt(view, 9, "elsewhere", TWO)
    if is_of_group:
        await scene.client.change([], {f"{elsewhere.prefix}{CLUSTER}": b"1"})
    renewals = scene.renewals(group=lambda: view.group if is_of_group else "another")
    await renewals.round()
    assert ("restored from a backup" if is_of_group else "is of group") in renewals.why_not
    assert scene.others == [] and renewals.until < scene.clock.now


async def test_a_broker_that_joined_while_it_renewed_early_is_of_its_group_as_the_master(scene: Scene) -> None:
    elsewhere = scene.open()[1]
    await elsewhere.adopt(await elsewhere.view(), 9, "elsewhere", TWO)
    renewals = scene.renewals(group=lambda: "")
    renewals.go_on_for(lambda: True, scene.others.append, lambda: "another")
    await renewals.round()
    assert "is of group" in renewals.why_not and scene.others == []


async def test_a_copy_of_the_own_record_in_another_etcd_proves_nothing_until_it_is_adopted(scene: Scene) -> None:
    """The other members may use the etcd of which it is a copy."""
    await scene.client.change([], {f"{scene.register.prefix}{CLUSTER}": b"1"})
    renewals = scene.renewals()
    await renewals.round()
    assert "epoch 1 of" in renewals.why_not and "restored from a backup" in renewals.why_not
    assert scene.others == [] and renewals.until < scene.clock.now
    with pytest.raises(Refused, match="restored from a backup"):
        await scene.register.publish(1, "id", ONE, [TWO], IN_SYNC)
    await scene.register.adopt(await scene.register.view(), 1, "id", ONE)
    await renewals.round()
    assert renewals.until == deadline(scene.clock.now, LEASE_S)
    assert (await scene.register.publish(1, "id", ONE, [TWO], IN_SYNC)).in_sync == (ONE, TWO)


async def test_a_renewal_in_an_etcd_that_was_restored_meanwhile_proves_nothing(tmp_path: Path) -> None:
    """It has the revisions that are compared, and another id."""
    with etcd(tmp_path / "etcd") as (member,):
        scene = Scene(member.url)
        await scene.register.init(1, "id", ONE)
        renewals = scene.renewals()
        await renewals.round()
        member.begin_anew("another")
        scene.clock.now = 101.0
        await renewals.round()
        assert renewals.until == deadline(100.0, LEASE_S) and "restored from a backup" in renewals.why_not
