"""A master whose folder was replaced by an older copy, with a real etcd: the record tells how long its log was."""

from __future__ import annotations

from itertools import count

import pytest

from appliance.failover.view import Figures
from appliance.process.process_identity import new_session
from appliance.register.etcd import EtcdClient, endpoints_of
from appliance.register.register import LogShortened, Register
from appliance.register.term import IN_SYNC, Term
from tests.servers.etcd import EtcdMember

pytestmark = pytest.mark.usefixtures("patient_clients")
NAMES = count()
ONE, TWO = "127.0.0.1:1", "127.0.0.1:2"
END = 490  # of the copy


class Scene:
    """One epoch's master, and the process that is started with a copy of its store after it."""

    def __init__(self, url: str) -> None:
        self._url, self._name = url, f"copies {next(NAMES)}"
        self.before, self.after = self.process(), self.process()

    def process(self) -> Register:
        """The register as another process of the master's store has it."""
        register = Register(EtcdClient(endpoints_of(self._url)), "cluster", self._name)
        register.session, register.is_store_local = new_session(), True
        return register

    async def begin(self, *in_sync: str) -> None:
        await self.init()
        await self.publish(*in_sync)

    async def init(self) -> None:
        await self.before.init(1, "id", ONE)
        assert [(await self.before.join(store))[1] for store in ("store one", "store two")] == [1, 2]

    async def publish(self, *in_sync: str) -> None:
        self.in_sync = in_sync
        await self.before.publish(1, "id", ONE, in_sync, IN_SYNC, {ONE: ("store one", "a"), TWO: ("store two", "b")})

    async def tell(self, end: int, *, boot: str = "b", epoch: int = 1, known: tuple[int, int] = (-1, -1)) -> None:
        """What the slave says of itself."""
        said = Figures(TWO, boot, epoch, end, end, is_healthy=True, known_epoch=known[0], known_end=known[1])
        assert await self.before.tell(2, said, await self.before.view())

    async def claim(self, boot: str = "a", *, store: str = "store one", at: str = ONE) -> Term:
        """The copy's process wants to go on."""
        return await self.after.publish(1, "id", at, self.in_sync, IN_SYNC, {at: (store, boot)}, end=END)

    async def is_refused(self, boot: str = "a", **of_copy: str) -> bool:
        before = await self.after.view()
        try:
            term = await self.claim(boot, **of_copy)
        except LogShortened:
            assert await self.after.view() == before
            return True
        assert term.session == self.after.session
        return False


@pytest.fixture
def scene(member: EtcdMember) -> Scene:
    return Scene(member.url)


@pytest.mark.parametrize("end", [END, END + 10])
async def test_a_log_that_was_longer_when_its_master_gave_up_its_role_is_an_older_copy(scene: Scene, end: int) -> None:
    """The figures of slaves are up to two seconds old."""
    await scene.begin(TWO)
    await scene.tell(END)
    assert await scene.before.release(1, "id", end)
    assert await scene.is_refused() == (end > END)


@pytest.mark.parametrize("in_sync", [(), (TWO,)], ids=["sole", "two"])
@pytest.mark.parametrize("end", [END, END + 10])
async def test_no_member_has_more_of_an_epoch_than_its_owner(scene: Scene, in_sync: tuple[str, ...], end: int) -> None:
    await scene.begin(*in_sync)
    await scene.tell(end)
    assert await scene.is_refused() == (end > END)


@pytest.mark.parametrize("change", ["dies", "publishes"])
async def test_what_was_told_of_its_log_outlasts_changes_that_cost_no_log(scene: Scene, change: str) -> None:
    await scene.begin(TWO)
    await scene.publish()
    await scene.tell(END + 10)
    if change == "dies":
        assert await scene.before.witness(scene.before.session.rpartition("/")[0])
    else:
        await scene.publish(TWO)
        await scene.publish()
    assert await scene.is_refused()


async def test_a_sole_owner_goes_on_with_a_new_boot_and_again_after_it(scene: Scene) -> None:
    """Its machine has lost the end of its log; the slave that has it is dead, and has told so before."""
    await scene.begin()
    await scene.tell(END + 10)
    assert not await scene.is_refused("a later boot")
    scene.after = scene.process()
    assert not await scene.is_refused("a later boot")


async def test_what_a_member_in_sync_told_in_another_boot_was_of_a_log_that_it_has_cut(scene: Scene) -> None:
    await scene.init()
    await scene.tell(END + 10, boot="before it was cut")
    await scene.publish(TWO)
    assert not await scene.is_refused()


async def test_what_it_tells_now_counts_though_its_machine_has_restarted(scene: Scene) -> None:
    await scene.begin(TWO)
    await scene.tell(END + 10, boot="a later one")
    assert await scene.is_refused()


@pytest.mark.parametrize("epoch", [0, 1])
async def test_how_long_its_log_was_before_its_machine_lost_the_end_counts(scene: Scene, epoch: int) -> None:
    await scene.begin(TWO)
    await scene.tell(END - 10, boot="a later one", epoch=epoch, known=(1, END + 10))
    assert await scene.is_refused()


async def test_what_was_told_of_an_earlier_epoch_says_nothing(scene: Scene) -> None:
    await scene.begin(TWO)
    await scene.tell(END + 10, epoch=0)
    assert not await scene.is_refused()


@pytest.mark.parametrize("in_sync", [(), (TWO,)], ids=["sole", "two"])
@pytest.mark.parametrize("at", [ONE, "127.0.0.1:3"], ids=["its address", "another"])
async def test_another_store_than_the_member_on_record_is_refused(
    scene: Scene, in_sync: tuple[str, ...], at: str
) -> None:
    """A restored one, without member.json: the same epoch is in it, and nothing is known of how long its log was."""
    await scene.begin(*in_sync)
    assert await scene.is_refused(store="restored", at=at)
    await scene.after.join("restored")
    assert await scene.is_refused(store="restored", at=at)
    assert not await scene.is_refused(at=at)  # the member itself, wherever it serves


async def test_a_store_that_has_not_joined_goes_on_where_no_member_is_on_record(scene: Scene) -> None:
    await scene.before.init(1, "id", ONE)
    scene.in_sync = ()
    assert not await scene.is_refused(store="never joined")
    await scene.after.join("never joined")
    assert (await scene.claim(store="never joined")).holders[ONE].id == 1
