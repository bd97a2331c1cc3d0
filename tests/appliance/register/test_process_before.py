"""A master that was started again, with a real etcd: when it goes on in the epoch of the process before it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import pytest

from appliance.failover.lease import LEASE_S
from appliance.failover.view import Beat, TermState
from appliance.process.process_identity import identity, new_session, start_ticks
from appliance.register import register as register_module
from appliance.register.etcd import EtcdClient, Is, OutcomeUnknown, endpoints_of
from appliance.register.register import Refused, Register
from appliance.register.term import IN_SYNC, Term
from tests.servers.etcd import EtcdMember
from tests.waiting import Clock

pytestmark = pytest.mark.usefixtures("patient_clients")
NAMES = count()
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"
BEFORE, AFTER = "boot/ns/17/5/first", "boot/ns/18/9/second"
ELSEWHERE = "another boot/ns/17/5/first"
UNKNOWN = "/first"  # its machine does not say what it is


class Client(EtcdClient):
    """meanwhile: happens before the next change arrives. loses_answer: of that change, which is executed."""

    meanwhile: Callable[[], Awaitable[object]] | None = None
    loses_answer = False

    async def change(self, compare: Sequence[Is], puts: Mapping[str, bytes], *more: Any, **further: Any) -> int | None:
        if self.meanwhile is not None:
            happens, self.meanwhile = self.meanwhile, None
            await happens()
        revision = await super().change(compare, puts, *more, **further)
        if self.loses_answer:
            self.loses_answer = False
            raise OutcomeUnknown("no answer")
        return revision


class Scene:
    """One epoch's master, and the process that is started with its store after it."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.counter = Clock(100.0), count(1)
        monkeypatch.setattr(register_module, "awake_s", self.clock)
        name = f"broker {next(NAMES)}"
        self.before = Register(EtcdClient(endpoints_of(url)), "cluster", name)
        self.client = Client(endpoints_of(url))
        self.after = Register(self.client, "cluster", name)
        self.after.session, self.after.is_store_local = AFTER, True

    async def begin(self, session: str = BEFORE) -> None:
        """The first process is the master, and has renewed."""
        await self.before.init(1, "id", ONE)
        self.before.session = session
        await self.before.publish(1, "id", ONE, [TWO], IN_SYNC)
        await self.renew()

    async def renew(self, lease_s: float = LEASE_S) -> None:
        view = await self.before.view()
        beat = Beat("beats", next(self.counter), lease_s)
        assert await self.before.renew(beat, view.term_revision, view.beat_revision, view.cluster_id) is not None

    async def claim(self) -> None:
        await self.after.publish(1, "id", ONE, [TWO], IN_SYNC)

    async def waits(self) -> bool:
        """Whether the second process does not get the epoch by itself now; the record is as it was then."""
        before = await self.after.view()
        try:
            await self.claim()
        except Refused as exc:
            assert "may still be the master" in str(exc)
            assert await self.after.view() == before
            return True
        assert (await self.term()).session == self.after.session
        return False

    async def term(self) -> Term:
        term = (await self.after.view()).term
        assert term is not None
        return term


@pytest.fixture
def scene(member: EtcdMember, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(member.url, monkeypatch)


@pytest.fixture
def running() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


async def test_a_lock_on_a_local_disk_proves_that_a_process_of_this_boot_is_dead(scene: Scene) -> None:
    await scene.begin()
    assert not await scene.waits()
    with pytest.raises(Refused, match="another process has this epoch"):
        await scene.before.publish(1, "id", ONE, [TWO], IN_SYNC)


async def test_one_that_still_runs_is_not_dead_though_a_copy_of_its_store_has_a_lock_too(
    scene: Scene, running: subprocess.Popen[bytes]
) -> None:
    scene.after.session = new_session()
    await scene.begin(f"{identity(running.pid, start_ticks(running.pid))}/first")
    assert await scene.waits()
    running.kill()
    running.wait()
    assert not await scene.waits()


@pytest.mark.parametrize("session", [ELSEWHERE, UNKNOWN])
async def test_a_disk_that_another_machine_may_have_had_proves_nothing(scene: Scene, session: str) -> None:
    await scene.begin(session)
    assert await scene.waits()
    scene.clock.now += LEASE_S
    assert not await scene.waits()


async def test_where_a_lock_proves_nothing_it_waits_for_a_lease_since_it_first_saw_the_beat(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    scene.clock.now += 60.0  # the beat is old, as other clocks know; this process has not seen it yet
    assert await scene.waits()
    scene.clock.now += LEASE_S - 0.1
    assert await scene.waits()
    scene.clock.now += 0.1
    assert not await scene.waits()
    scene.clock.now += 1.0
    await scene.after.publish(1, "id", ONE, [], IN_SYNC)  # it is the master as any other from now on
    assert (await scene.term()).in_sync == (ONE,)


async def test_each_renewal_begins_the_wait_anew(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    for _ in range(3):
        assert await scene.waits()
        scene.clock.now += LEASE_S - 0.1
        await scene.renew()
    assert await scene.waits()
    scene.clock.now += LEASE_S
    assert not await scene.waits()


async def test_a_renewal_that_arrives_twice_counts_once(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    view = await scene.before.view()
    sent = Beat("beats", next(scene.counter), LEASE_S), view.term_revision, view.beat_revision, view.cluster_id
    assert await scene.waits()
    scene.clock.now += LEASE_S - 0.1
    assert await scene.before.renew(*sent) is not None
    assert await scene.waits()
    scene.clock.now += LEASE_S
    assert await scene.before.renew(*sent) is None
    assert not await scene.waits()


async def test_a_renewal_that_was_not_seen_defeats_the_claim(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    assert await scene.waits()
    scene.clock.now += LEASE_S
    scene.client.meanwhile = scene.renew
    with pytest.raises(Refused, match="in the meantime"):
        await scene.claim()
    assert (await scene.term()).session == BEFORE
    assert await scene.waits()


async def test_the_first_beat_of_a_process_that_had_none_defeats_the_claim(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.before.init(1, "id", ONE)
    scene.before.session = BEFORE
    await scene.before.publish(1, "id", ONE, [TWO], IN_SYNC)
    scene.client.meanwhile = scene.renew
    with pytest.raises(Refused, match="in the meantime"):
        await scene.claim()
    assert await scene.waits()


@pytest.mark.parametrize(("of_settings", "of_beat"), [(9.0, 3.0), (3.0, 9.0), (9.0, 0.0)])
async def test_the_longer_lease_counts_of_the_beat_and_of_the_settings(
    scene: Scene, of_settings: float, of_beat: float
) -> None:
    scene.after.is_store_local, scene.after.lease_s = False, of_settings
    await scene.begin()
    await scene.renew(of_beat)
    assert await scene.waits()
    scene.clock.now += 8.9
    assert await scene.waits()
    scene.clock.now += 0.1
    assert not await scene.waits()


async def test_who_gave_the_role_up_is_not_waited_for(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    assert await scene.waits()
    assert await scene.before.release(1, "id", 500)
    assert not await scene.waits()
    assert (await scene.term()).state is TermState.OPEN


async def test_a_claim_whose_answer_was_lost_is_known_for_its_own(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    assert await scene.waits()
    scene.clock.now += LEASE_S
    scene.client.loses_answer = True
    assert not await scene.waits()
    assert not await scene.waits()


async def test_while_it_waits_a_member_in_sync_may_be_faster(scene: Scene) -> None:
    scene.after.is_store_local = False
    await scene.begin()
    assert await scene.waits()
    view = await scene.before.view()
    later = Term(2, "later", TWO, (TWO,), IN_SYNC, session="a third one", state=TermState.OPENING)
    assert await scene.before.succeed(view, later, Beat("its beats", 1, LEASE_S), start=500, reason="failover")
    scene.clock.now += LEASE_S
    assert await scene.after.publish(1, "id", ONE, [TWO], IN_SYNC) == later
    assert await scene.term() == later
