"""The power goes at random moments: only what was synced is surely there."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
from pathlib import Path

import pytest

from store import MessageStore, PutMessageStatus
from store.startup import checkpoint
from store.upkeep import flush
from tests.faults.kit.disk import Disk, settings_of
from tests.faults.kit.ledger import Ledger
from tests.faults.kit.traffic import Acknowledged, Traffic, crash_config
from tests.store.conftest import message, opened

CUTS_PER_FOLDER = 6
LIVES_MAX = 3
SYNCS_MAX = 150
LIFE_S = 0.5


class Life:
    """One folder under power: stores are opened, killed, stopped and opened again until the power goes."""

    def __init__(self, disk: Disk, name: str, chance: random.Random, flush_disk_type: str, target: Path) -> None:
        self.owed: list[Acknowledged] = []  # what must survive
        self._disk = disk
        self._name = name
        self._chance = chance
        self._target = target
        self._config = crash_config(disk.root, **settings_of(flush_disk_type))
        self._acknowledged: list[Acknowledged] = []
        self._store: MessageStore | None = None
        self._cut_at = int(SYNCS_MAX ** chance.random())  # as often in the first ten syncs as in the next hundred
        disk.on_sync = self._perhaps_cut

    @property
    def is_over(self) -> bool:
        return self._target.exists()

    def live(self) -> None:
        """Return when the power has gone."""
        for number in range(LIVES_MAX):
            asyncio.run(self._run_store(f"{self._name}-{number}"))
            if self.is_over:
                return
        self._cut()

    async def _run_store(self, name: str) -> None:
        store = self._store = MessageStore(self._config)  # known before it is opened: the power may go then
        store.load()
        store.start()
        running = asyncio.create_task(store.run())
        traffic = asyncio.create_task(Traffic(store, self._chance, name, self._acknowledged.extend).run())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._chance.random() * LIFE_S):
                while not self.is_over:
                    await asyncio.sleep(0.005)
        for task in (traffic, running):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._chance.random() < 0.5:
            store.close()
            return
        store.abandon()
        self._note_owed()  # after the last sync under way has ended

    def _perhaps_cut(self, number: int) -> None:
        if number == self._cut_at:
            self._cut()

    def _cut(self) -> None:
        self._note_owed()  # first: what is acknowledged a moment later may be on disk a moment later
        self._disk.after_power_cut(self._target)

    def _note_owed(self) -> None:
        """With SYNC_FLUSH all acknowledged messages are owed; else those the store says it has flushed."""
        assert self._store is not None
        if self.is_over:
            return
        flushed = self._store.flushed_offset
        sync = self._config.is_sync_flush
        known = set(self.owed)  # a transaction's end has the key of its half
        self.owed += [
            each for each in list(self._acknowledged)
            if each not in known and (sync or max(each.physical_offset + 1, each.end_offset) <= flushed)
        ]  # fmt: skip


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("flush_disk_type", ["SYNC_FLUSH", "ASYNC_FLUSH"])
def test_what_was_flushed_survives_a_power_cut(
    tmp_path: Path, rounds: int, seed: int, flush_disk_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flush, "SYNC_QUEUES_INTERVAL_S", 0.03)
    monkeypatch.setattr(flush, "THOROUGH_INTERVAL_S", 0.02)
    monkeypatch.setattr(checkpoint, "SAFETY_MS", 1)  # believe the checkpoint as far as one may
    chance = random.Random(seed)
    total = 0
    owed: list[Acknowledged] = []
    folder = tmp_path / "0"
    for number in range(rounds):
        if number % CUTS_PER_FOLDER == 0:
            total += len(owed)
            owed = []
            folder = tmp_path / str(number)
            folder.mkdir()
        target, copy = tmp_path / f"{number}-cut", tmp_path / f"{number}-copy"
        with monkeypatch.context() as patch:
            disk = Disk(folder, chance, patch)
            life = Life(disk, f"s{number}", chance, flush_disk_type, target)
            life.live()
            disk.close()
        owed += life.owed
        print(f"round {number}: cut at sync {disk.syncs}, {len(owed)} owed")
        shutil.rmtree(folder)
        folder = target
        shutil.copytree(folder, copy)
        check(copy, chance, owed)
        shutil.rmtree(copy)
    assert total + len(owed) > rounds


def check(folder: Path, chance: random.Random, owed: list[Acknowledged]) -> None:
    """A copy of what the cut left opens, is consistent, and has all that is owed."""
    store = opened(crash_config(folder, **settings_of("ASYNC_FLUSH")))
    Ledger(chance).check(store, owed)
    store.close()


def test_a_start_after_a_kill_calls_nothing_flushed_before_the_disk_has_it(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "store"
    folder.mkdir()
    claims: list[tuple[int, Path]] = []
    with monkeypatch.context() as patch:
        disk = Disk(folder, chance, patch)
        killed = opened(crash_config(folder))
        for number in range(260):  # two files of the log and some of a third
            assert killed.put_message(message(bytes(1000), keys=str(number))).status is PutMessageStatus.PUT_OK
            if number == 130:
                killed.parts.log.sync()
        written = killed.max_physical_offset
        killed.abandon()
        started = MessageStore(crash_config(folder))

        def cut(number: int) -> None:
            copy = tmp_path / f"cut-{number}"
            claims.append((started.flushed_offset, copy))
            disk.after_power_cut(copy)

        disk.on_sync = cut
        started.load()
        assert started.flushed_offset == written
        started.close()
        disk.close()
    assert len(claims) > 4
    for flushed, copy in claims:
        survived = MessageStore(crash_config(copy))
        survived.load()
        assert survived.max_physical_offset >= flushed, f"{copy.name}: the power took what was called flushed"
        survived.close()
