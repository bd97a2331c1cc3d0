"""What a start makes of the files it finds: whole, torn, zeroed, flipped, stale, foreign."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from gantrymq.message import record
from store import MessageStore, MessageStoreConfig, RunningFlags, StoreDamaged, StoreLocked
from store.startup import recovery
from store.startup.format_stamp import STAMP_NAME
from store.startup.log_cut import ends_with_blank
from tests.store.conftest import Clock, OpenStore, bodies, message, overwrite, put_numbered, small_config


@pytest.mark.parametrize("clean", [True, False])
def test_everything_is_there_after_a_restart(small: MessageStoreConfig, open_store: OpenStore, clean: bool) -> None:
    store = open_store(small)
    put_numbered(store, 1500)
    expected = bodies(store)
    store.close() if clean else store.abandon()
    again = open_store(small)
    assert bodies(again) == expected
    assert again.max_offset("T", 0) == 1500
    assert again.put_message(message(b"next")).queue_offset == 1500
    assert len(again.query_message("T", "k3", 32, 0, 1 << 62).buffers) >= 1


@pytest.mark.parametrize("damage", ["torn", "zeroed", "flipped", "size", "stale position"])
def test_a_damaged_tail_is_cut_where_it_begins(
    small: MessageStoreConfig, open_store: OpenStore, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(small)
    offsets = put_numbered(store, 20)
    expected = bodies(store)
    store.abandon()
    last = offsets[-1]
    match damage:
        case "torn":
            overwrite(small, last + 60, bytes(400))
        case "zeroed":
            overwrite(small, last, bytes(400))
        case "flipped":
            overwrite(small, last + 90, b"\xff")
        case "size":
            overwrite(small, last, struct.pack(">i", 5))
        case "stale position":
            overwrite(small, last + 28, struct.pack(">q", last + 65536))
    again = open_store(small)
    assert bodies(again) == expected[:-1]
    assert again.max_physical_offset == last
    assert again.put_message(message(b"new")).queue_offset == 19
    assert bodies(again)[-1] == b"new"
    assert (damage == "zeroed") == ("commit log cut" not in caplog.text)


@pytest.mark.parametrize("size", [100, 99, 300])
def test_what_was_cut_does_not_come_back(small: MessageStoreConfig, open_store: OpenStore, size: int) -> None:
    """The stale-tail hazard: RocketMQ brings records 11 … 19 back to life here, or units into the middle of others."""
    store = open_store(small)
    offsets = put_numbered(store, 20)
    store.abandon()
    overwrite(small, offsets[10] + 100, b"\xff")
    second = open_store(small)
    put_numbered(second, 1, size=size, start=500)
    expected = bodies(second)
    second.close()
    third = open_store(small)
    assert len(expected) == 11
    assert bodies(third) == expected
    third.abandon()
    assert bodies(open_store(small)) == expected


def test_units_of_messages_that_are_not_there_are_dropped(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    put_numbered(store, 5)
    expected = bodies(store)
    store.close()
    (path,) = (small.root / "consumequeue" / "T" / "0").iterdir()
    units = path.read_bytes()[:100]
    wrong = struct.pack(">qiq", 17, 120, 0) + struct.pack(">qiq", 1 << 40, 120, 0)
    path.write_bytes((units + wrong).ljust(2000, b"\0"))
    again = open_store(small)
    assert bodies(again) == expected
    assert again.max_offset("T", 0) == 5


def store_with_index_files(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> MessageStore:
    store = open_store(small)
    for number in range(900):
        clock.now += 1
        store.put_message(message(bytes(400), keys=f"k{number}"))
    store.queue_flusher.finish()
    store.log_flusher.finish()
    return store


def test_the_index_survives_a_crash(small: MessageStoreConfig, open_store: OpenStore, clock: Clock) -> None:
    """RocketMQ deletes nearly every index file after a crash; old keys can't be found any more."""
    store = store_with_index_files(small, open_store, clock)
    store.checkpoint.save()
    store.abandon()
    again = open_store(small)
    assert again.parts.index.files[0].path.name < "20240101"  # made before the crash, kept
    for number in (0, 5, 450, 899):
        raws = again.query_message("T", f"k{number}", 64, 0, 1 << 62).buffers
        assert f"k{number}" in [record.decode_record(raw).keys[0] for raw in raws]


def test_a_damaged_index_is_dropped_not_believed(
    small: MessageStoreConfig, open_store: OpenStore, clock: Clock
) -> None:
    store = store_with_index_files(small, open_store, clock)
    store.abandon()
    first = min((small.root / "index").iterdir())
    data = bytearray(first.read_bytes())
    data[440 + 20 * 50 : 440 + 20 * 60] = bytes(200)
    first.write_bytes(data)
    open_store(small)
    assert not first.exists()


def test_a_log_file_of_the_wrong_size_is_an_error_that_says_what_to_do(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    store = open_store(small)
    put_numbered(store, 3)
    store.close()
    with pytest.raises(StoreDamaged, match="mappedFileSizeCommitLog says 131072"):
        open_store(small_config(small.root, commit_log_file_bytes=131072))
    assert len(bodies(open_store(small))) == 3


def test_queues_follow_when_the_oldest_log_file_is_gone(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    offsets = put_numbered(store, 300, size=900)
    store.checkpoint.keep_from(65536)
    store.close()
    (small.commit_log_folders[0] / f"{0:020d}").unlink()
    shutil.rmtree(small.root / "consumequeue")
    again = open_store(small)
    first = next(number for number, offset in enumerate(offsets) if offset >= 65536)
    assert again.min_offset("T", 0) == first
    assert again.max_offset("T", 0) == 300
    assert bodies(again)[0].startswith(b"%06d" % first)


def test_a_second_opener_is_refused(small: MessageStoreConfig, open_store: OpenStore) -> None:
    open_store(small)
    with pytest.raises(StoreLocked):
        MessageStore(small).load()


def test_a_file_made_in_advance_is_gone_after_a_clean_stop(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    put_numbered(store, 3)
    store.parts.log.prepare()
    assert len(list(small.commit_log_folders[0].iterdir())) == 2
    store.close()
    assert [path.name for path in small.commit_log_folders[0].iterdir()] == [f"{0:020d}"]


def test_a_file_made_in_advance_does_no_harm_after_a_crash(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    put_numbered(store, 3)
    store.parts.log.prepare()
    store.abandon()
    again = open_store(small)
    assert len(bodies(again)) == 3
    put_numbered(again, 300, size=900)
    assert len(bodies(again)) == 303


def test_the_shapes_of_small_files(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    store.put_message(message())
    store.close()
    sizes = {path.relative_to(tmp_path).parts[0]: path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()}
    assert sizes == {
        "commitlog": 65536,
        "consumequeue": 2000,
        "index": 40 + 4 * 100 + 20 * 400,
        "checkpoint": 4096,
        "lock": 4,
        "gantry.format": (tmp_path / STAMP_NAME).stat().st_size,
    }
    assert (tmp_path / "lock").read_bytes() == b"lock"


@pytest.mark.parametrize(
    ("flag", "is_clean"),
    [(flag, flag in (RunningFlags(0), RunningFlags.DISK_FULL)) for flag in (RunningFlags(0), *RunningFlags)],
)
def test_a_stop_is_clean_unless_something_failed(
    small: MessageStoreConfig, open_store: OpenStore, flag: RunningFlags, is_clean: bool
) -> None:
    """A full disk is no failure: all that was accepted is there."""
    store = open_store(small)
    store.put_message(message())
    store.parts.state.set_flag(flag, True)
    store.close()
    assert (small.root / "abort").exists() == (not is_clean)


def test_a_store_that_was_loaded_and_never_started_leaves_the_mark_of_a_crash(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    open_store(small).abandon()
    looked_at = MessageStore(small)
    looked_at.load()
    looked_at.close()
    assert (small.root / "abort").exists()


@pytest.mark.parametrize("change", [-8, -1, 1, 8, 65536])
def test_a_file_ends_with_a_blank_record_up_to_its_very_end(
    small: MessageStoreConfig, open_store: OpenStore, change: int
) -> None:
    """One of another length is none: what follows was not written behind it."""
    store = open_store(small)
    while store.parts.log.position < small.commit_log_file_bytes:
        store.put_message(message(bytes(1000)))
    first = store.parts.log.queue.files[0]
    last = max(unit.physical_offset + unit.size_bytes for unit in store.consume_queue_units("T", 0, 0, 70)
               if unit.physical_offset < first.end)  # fmt: skip
    size, magic = record.BLANK.unpack_from(first.view, last)
    assert (size, magic) == (first.end - last, record.BLANK_MAGIC)
    assert ends_with_blank(first, last)
    assert first.map is not None
    record.BLANK.pack_into(first.map, last, size + change, magic)
    assert not ends_with_blank(first, last)
    record.BLANK.pack_into(first.map, last, size, magic)


def test_after_a_kill_all_files_of_a_queue_are_synced_that_were_not(
    small: MessageStoreConfig, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its units are said again and found the same: nothing else writes them, and the next seal vouches for them."""
    store = open_store(small)
    for _ in range(250):
        store.put_message(message())
    store.queue_flusher.write_out()
    store.abandon()
    synced: set[Path] = set()
    monkeypatch.setattr(recovery, "sync_paths", synced.update)
    open_store(small)
    assert {int(path.name) for path in synced} == {0, 2000, 4000}
