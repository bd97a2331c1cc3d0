"""What `gantry store verify` says about sound folders, and about each kind of damage: what, which file, where."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from store import MessageStoreConfig
from store.inspect import index_check
from store.inspect.findings import Findings, Level
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.index_reader import IndexShape
from store.inspect.log_reader import BreakKind
from store.inspect.verify import VerifyResult, verify_store
from tests.store.conftest import Clock, OpenStore, message, small_config
from tests.store.golden import GOLDEN_STORES, commit_log_records, unpack
from tests.store.inspect.conftest import MESSAGES, fill, log_file, overwrite, queue_file, snapshot

ROOT = Path(__file__).resolve().parents[3]
INDEX_ENTRY_AT = 40 + 4 * 100  # of the small settings; entry 0


def verify(root: Path) -> VerifyResult:
    with StoreFolder(root) as folder:
        return verify_store(folder)


def worst_lines(result: VerifyResult) -> list[str]:
    return [str(finding) for finding in result.findings if finding.level > Level.NOTE]


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_apaches_stores_are_sound_and_stay_untouched(name: str, tmp_path: Path) -> None:
    config = unpack(name, tmp_path)
    before = snapshot(config.root)
    result = verify(config.root)
    assert worst_lines(result) == []
    assert result.records == len(list(commit_log_records(config.root)))
    assert snapshot(config.root) == before


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_the_shape_of_an_index_is_found_from_its_bytes(name: str, tmp_path: Path) -> None:
    with StoreFolder(unpack(name, tmp_path).root) as folder:
        assert folder.index_shape == IndexShape(slots=100, entries=400)


def test_our_own_store_is_sound_after_a_clean_stop(stopped: MessageStoreConfig) -> None:
    before = snapshot(stopped.root)
    result = verify(stopped.root)
    assert worst_lines(result) == []
    assert result.records == MESSAGES + 5
    assert result.units == MESSAGES + 3
    assert result.index_entries == MESSAGES + 4
    assert result.log_break.kind is BreakKind.END
    assert snapshot(stopped.root) == before


def test_a_live_store_is_sound_though_its_queues_lag_behind(
    small: MessageStoreConfig, open_store: OpenStore, clock: Clock
) -> None:
    store = open_store(small)
    fill(store, clock)
    with StoreFolder(small.root) as folder:
        assert folder.state is StoreState.LIVE
        result = verify_store(folder)
    assert worst_lines(result) == []
    assert result.records == MESSAGES + 5
    with StoreFolder(small.root) as folder:
        assert folder.state is StoreState.LIVE  # looking did not end the lock


@pytest.mark.parametrize("state", [StoreState.LIVE, StoreState.STOPPED])
def test_a_queue_file_without_length_is_no_damage_while_it_may_be_being_made(
    small: MessageStoreConfig, open_store: OpenStore, clock: Clock, state: StoreState
) -> None:
    store = open_store(small)
    fill(store, clock)
    store.close()
    if state is StoreState.LIVE:
        open_store(small)
    newest = max((small.root / "consumequeue").glob("*/0/*"))
    (newest.parent / f"{int(newest.name) + newest.stat().st_size:020d}").touch()
    with StoreFolder(small.root) as folder:
        assert folder.state is state
        assert bool(worst_lines(verify_store(folder))) == (state is StoreState.STOPPED)


def test_what_a_crash_left_undone_is_a_warning(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> None:
    store = open_store(small)
    fill(store, clock)
    store.abandon()
    result = verify(small.root)
    assert result.findings.worst is Level.WARNING
    assert result.findings.counts["queue_absent"] == 3  # no queue was written to its files yet


def test_a_deleted_topic_leaves_records_but_no_damage(
    small: MessageStoreConfig, open_store: OpenStore, clock: Clock
) -> None:
    store = open_store(small)
    fill(store, clock, 30)
    store.delete_topic("B")
    store.delete_topic("T")
    store.put_message(message(b"anew"))
    store.close()
    result = verify(small.root)
    assert result.findings.worst is Level.WARNING  # B: files alone can't tell whether it was deleted or lost
    assert result.findings.counts["queue_restart"] == 1
    assert result.bad_queues == set()


Damage = Callable[[MessageStoreConfig], None]
_DAMAGES: dict[str, tuple[Damage, str, str, int]] = {
    # name: damage, finding's code, end of the file's path, position in the file
    "body flipped": (lambda c: overwrite(log_file(c), record_at(c, 5) + 90, b"\xff"), "damaged_record", "0" * 20, 5),
    "record zeroed": (lambda c: overwrite(log_file(c), record_at(c, 5), bytes(100)), "damaged_record", "0" * 20, 5),
    "size": (lambda c: overwrite(log_file(c), record_at(c, 5), b"\0\0\0\5"), "damaged_record", "0" * 20, 5),
    "magic": (lambda c: overwrite(log_file(c), record_at(c, 5) + 4, b"\0"), "damaged_record", "0" * 20, 5),
    "own offset": (lambda c: overwrite(log_file(c), record_at(c, 5) + 30, b"\7"), "damaged_record", "0" * 20, 5),
    "queue offset": (lambda c: overwrite(log_file(c), record_at(c, 5) + 27, b"\7"), "queue_offset", "0" * 20, 5),
    "queue id": (lambda c: overwrite(log_file(c), record_at(c, 5) + 15, b"\7"), "unit_stray", "/T/0/" + "0" * 20, 100),
    "unit offset": (lambda c: overwrite(queue_file(c), 5 * 20 + 7, b"\1"), "unit_stray", "/T/0/" + "0" * 20, 100),
    "unit order": (lambda c: overwrite(queue_file(c), 5 * 20, bytes(8)), "unit_order", "/T/0/" + "0" * 20, 100),
    "unit size": (lambda c: overwrite(queue_file(c), 5 * 20 + 11, b"\1"), "unit_wrong", "/T/0/" + "0" * 20, 100),
    "unit tag": (lambda c: overwrite(queue_file(c), 5 * 20 + 19, b"\0"), "unit_wrong", "/T/0/" + "0" * 20, 100),
    "due time": (lambda c: overwrite(queue_file(c, "SCHEDULE_TOPIC_XXXX", 1), 12, bytes(8)), "unit_wrong", "0" * 20, 0),
    "units zeroed": (lambda c: overwrite(queue_file(c), 5 * 20, bytes(40)), "unit_hole", "/T/0/" + "0" * 20, 100),
    "queue file gone": (lambda c: queue_file(c, index=200).unlink(), "files_missing", f"/T/0/{300 * 20:020d}", -1),
    "queue end gone": (lambda c: queue_file(c, index=800).unlink(), "unit_missing", f"/T/0/{700 * 20:020d}", 2000),
    "queue file short": (lambda c: shorten(queue_file(c, index=200)), "file_size", f"/T/0/{200 * 20:020d}", -1),
    "log file short": (lambda c: shorten(log_file(c, 65536)), "file_size", f"{65536:020d}", -1),
    "log file gone": (lambda c: log_file(c, 65536).unlink(), "files_missing", f"{131072:020d}", -1),
    "empty file": (lambda c: (c.root / "commitlog" / f"{196608:020d}").touch(), "empty_file", "196608", -1),
    "stray file": (lambda c: (c.root / "commitlog" / "x.tmp").touch(), "stray_file", "x.tmp", -1),
    "index hash": (lambda c: overwrite(index_file(c), INDEX_ENTRY_AT + 5 * 20 + 1, b"\0\0"), "index_entry", "", 540),
    "index offset": (lambda c: overwrite(index_file(c), INDEX_ENTRY_AT + 5 * 20 + 11, b"\1"), "index_entry", "", 540),
    "index chain": (lambda c: overwrite(index_file(c), INDEX_ENTRY_AT + 5 * 20 + 19, b"\3"), "index_entry", "", 540),
    "index slots": (lambda c: overwrite(index_file(c), 40, bytes(400)), "index_slot", "", 40),
    "index count": (lambda c: overwrite(index_file(c), 36, struct.pack(">i", 300)), "index_missing", "index", -1),
}


@pytest.mark.parametrize("name", _DAMAGES)
def test_damage_is_found_with_its_file_and_position(stopped: MessageStoreConfig, name: str) -> None:
    damage, code, path, position = _DAMAGES[name]
    if code in ("damaged_record", "queue_offset"):
        position = record_at(stopped, position)
    damage(stopped)
    result = verify(stopped.root)
    found = result.findings.of(code)
    assert found, [str(finding) for finding in result.findings]
    places = [(finding.path, finding.position) for finding in found]
    assert any(place.endswith(path) and position == at for place, at in places), places
    assert result.findings.worst is (Level.WARNING if name in ("stray file", "empty file") else Level.ERROR)


def test_records_behind_damage_are_still_verified(stopped: MessageStoreConfig) -> None:
    overwrite(log_file(stopped), record_at(stopped, 5) + 90, b"\xff")
    overwrite(log_file(stopped), record_at(stopped, 300) + 90, b"\xff")
    result = verify(stopped.root)
    assert result.records == MESSAGES + 5 - 2
    assert [found.kind for found in result.damaged_at] == [BreakKind.DAMAGE] * 2


@pytest.mark.parametrize(("crashed", "level"), [(True, Level.WARNING), (False, Level.ERROR)])
def test_a_torn_tail_is_what_a_crash_leaves(stopped: MessageStoreConfig, crashed: bool, level: Level) -> None:
    *_, (offset, raw) = commit_log_records(stopped.root)
    base = offset - offset % 65536
    overwrite(log_file(stopped, base), offset - base + len(raw) // 2, bytes(len(raw)))
    if crashed:
        (stopped.root / "abort").touch()
    result = verify(stopped.root)
    (found,) = result.findings.of("torn_tail")
    assert (found.level, found.position) == (level, offset - base)
    assert result.log_end == offset


def test_a_stale_tail_is_told_apart_from_damage(tmp_path: Path, open_store: OpenStore, clock: Clock) -> None:
    """What RocketMQ leaves when it truncates and goes on with longer records: the old ones still stand behind."""
    old, new = small_config(tmp_path / "old"), small_config(tmp_path / "new")
    for config, late in ((old, b"short"), (new, b"longer than before")):
        store = open_store(config)
        for number in range(20):
            clock.now += 1
            store.put_message(message(b"same" if number < 10 else late))
            if config is new and number == 12:
                break
        store.close()
    end = verify(new.root).log_end
    with log_file(new).open("r+b") as file:
        file.seek(end)
        file.write(log_file(old).read_bytes()[end:])
    shutil.rmtree(new.root / "index")  # nothing but log and queues are the point here
    result = verify(new.root)
    (found,) = result.findings.of("stale_tail")
    assert (found.level, found.position, result.log_end) == (Level.WARNING, end, end)
    assert worst_lines(result) == [str(found)]


def test_stale_units_behind_a_queues_end_are_only_noted(stopped: MessageStoreConfig) -> None:
    path = queue_file(stopped, index=800)
    overwrite(path, 30 * 20, struct.pack(">qiq", 17, 100, 0))
    result = verify(stopped.root)
    assert worst_lines(result) == []
    (found,) = result.findings.of("stale_units")
    assert (found.path, found.position) == (str(path), 20 * 20)


def test_extension_units_are_compared_with_their_messages(tmp_path: Path) -> None:
    config = unpack("cq_ext", tmp_path)
    overwrite(config.root / "consumequeue_ext/T1/0" / ("0" * 20), 2, b"\7")
    result = verify(config.root)
    (found,) = result.findings.of("unit_wrong")
    assert found.path.endswith("/consumequeue/T1/0/" + "0" * 20)
    assert found.position == 0


def record_at(config: MessageStoreConfig, number: int) -> int:
    """Position of the first file's record with this number."""
    with StoreFolder(config.root) as folder:
        unit = folder.queues["T", 0].unit_at(number)
    assert unit is not None
    return unit.physical_offset


def index_file(config: MessageStoreConfig) -> Path:
    return sorted((config.root / "index").iterdir())[0]


def shorten(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 20)


def test_a_store_that_is_being_written_is_sound_each_time(tmp_path: Path) -> None:
    """Messages by the ten thousand a second, files rolling several times: whatever the reader meets is no damage."""
    root = tmp_path / "store"
    command = [sys.executable, "-m", "tests.store.writer", str(root), "3", "async"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = threading.Thread(target=writer.stdout.read)
        assert writer.stdout.readline()
        told.start()  # its acknowledgements must not fill the pipe
        try:
            for _ in range(4):
                result = verify(root)
                assert worst_lines(result) == []
                assert result.records > 0
        finally:
            writer.kill()
            told.join()


@pytest.mark.parametrize(
    ("state", "level"),
    [(StoreState.LIVE, Level.NOTE), (StoreState.STOPPED, Level.WARNING), (StoreState.CRASHED, Level.WARNING)],
)
def test_an_index_whose_first_entries_came_meanwhile_is_no_damage_of_a_live_store(
    monkeypatch: pytest.MonkeyPatch, state: StoreState, level: Level
) -> None:
    """Its shape was looked for while the file was empty."""
    monkeypatch.setattr(index_check, "read_header", lambda file, reader: SimpleNamespace(next_entry=5))
    folder: Any = SimpleNamespace(
        state=state, index_shape=None, index_files=[SimpleNamespace(path=Path("index/1"))], reader=None,
        indexes=list, log=SimpleNamespace(min_offset=0),
    )  # fmt: skip
    findings = Findings()
    index_check.IndexCheck(folder, findings)
    assert [(one.level, one.code) for one in findings] == [(level, "index_shape")]
