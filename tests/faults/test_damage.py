"""Torn, zeroed, flipped and truncated ends of every kind of file, as a crash leaves them.

What the log has is found again, whatever became of the rest: queues and index are made from it. Damage that would cost
messages is reported with file and position, or the start is refused; see also tests/store/startup/test_recovery.py.
"""

from __future__ import annotations

import errno
import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import MessageStore, MessageStoreConfig, StoreDamaged
from store.base import cut_folder
from store.startup import log_cut
from tests.faults.kit.ledger import check_index
from tests.faults.kit.numbered import numbers, put
from tests.faults.kit.traffic import Acknowledged
from tests.store.conftest import opened, small_config

COUNT = 300
TAIL_BYTES = 700
Damage = Callable[[bytes], bytes]


def torn(data: bytes) -> bytes:
    """Of the last bytes only the first half was written."""
    return data[: -TAIL_BYTES // 2] + bytes(TAIL_BYTES // 2)


def zeroed(data: bytes) -> bytes:
    return data[:-TAIL_BYTES] + bytes(min(TAIL_BYTES, len(data)))


def flipped(data: bytes) -> bytes:
    return data[:-TAIL_BYTES] + bytes(each ^ 0x55 for each in data[-TAIL_BYTES:])


def truncated(data: bytes) -> bytes:
    return data[:-TAIL_BYTES]


def emptied(_data: bytes) -> bytes:
    return b""


DAMAGES = [torn, zeroed, flipped, truncated, emptied]


def spoil(path: Path, damage: Damage, *, padded: bool) -> None:
    """Damage the end of what was written to a file; `padded`: files of a fixed length, zeros behind."""
    whole = path.read_bytes()
    data = damage(whole.rstrip(b"\0"))
    path.write_bytes(data.ljust(len(whole), b"\0") if padded and damage not in (truncated, emptied) else data)


@pytest.fixture
def crashed(tmp_path: Path) -> MessageStoreConfig:
    """A store that was killed with everything in its files and nothing in its checkpoint's seal."""
    config = small_config(tmp_path / "store")
    store = opened(config)
    for number in range(COUNT):
        put(store, number)
    store.queue_flusher.finish()
    store.log_flusher.finish()
    store.abandon()
    return config


def files_of(config: MessageStoreConfig, kind: str) -> list[Path]:
    return sorted(path for path in (config.root / kind).rglob("*") if path.is_file())


def last_log_file(config: MessageStoreConfig) -> Path:
    """The last one written to: the next may have been made in advance."""
    return [path for path in files_of(config, "commitlog") if any(path.read_bytes())][-1]


def check_whole(store: MessageStore) -> None:
    assert numbers(store) == list(range(COUNT))
    for number in range(0, COUNT, 7):
        (unit,) = store.consume_queue_units("T", 0, number, 1)
        check_index(store, Acknowledged("T", 0, number, unit.physical_offset, f"k{number}"))
    put(store, COUNT)
    assert numbers(store) == list(range(COUNT + 1))
    store.close()


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["consumequeue", "index"])
def test_a_damaged_queue_or_index_is_made_again(crashed: MessageStoreConfig, kind: str, damage: Damage) -> None:
    spoil(files_of(crashed, kind)[-1], damage, padded=True)
    check_whole(opened(crashed))


@pytest.mark.parametrize("kind", ["consumequeue", "index"])
def test_lost_queues_or_indexes_are_made_again(crashed: MessageStoreConfig, kind: str) -> None:
    shutil.rmtree(crashed.root / kind)
    check_whole(opened(crashed))


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["checkpoint", "lock"])
def test_checkpoint_and_lock_may_be_anything(crashed: MessageStoreConfig, name: str, damage: Damage) -> None:
    path = crashed.root / name
    path.write_bytes(damage(path.read_bytes() + bytes(TAIL_BYTES)))
    check_whole(opened(crashed))


def test_a_checkpoint_from_the_future_is_not_believed(crashed: MessageStoreConfig) -> None:
    path = crashed.root / "checkpoint"
    path.write_bytes(b"\x7f" * 24 + path.read_bytes()[24:])
    files_of(crashed, "consumequeue")[-1].unlink()
    check_whole(opened(crashed))


@pytest.mark.parametrize("text", [b"", b"\0" * 100, b"pid 17"])
def test_whatever_stands_in_abort_it_says_that_the_stop_was_unclean(crashed: MessageStoreConfig, text: bytes) -> None:
    (crashed.root / "abort").write_bytes(text)
    files_of(crashed, "consumequeue")[-1].unlink()
    check_whole(opened(crashed))


@pytest.mark.parametrize("damage", [torn, zeroed, flipped])
def test_the_log_is_cut_where_its_damaged_end_begins(
    crashed: MessageStoreConfig, damage: Damage, caplog: pytest.LogCaptureFixture
) -> None:
    path = last_log_file(crashed)
    spoil(path, damage, padded=True)
    spoiled = path.read_bytes()
    store = opened(crashed)
    kept = numbers(store)
    assert kept == list(range(COUNT - 1))
    put(store, COUNT)
    assert numbers(store) == [*kept, COUNT]
    store.close()
    (report,) = [each.__dict__ for each in caplog.records if getattr(each, "event", "") == "commit_log_cut"]
    assert report["path"] == str(path)
    assert 0 < report["position"] < crashed.commit_log_file_bytes
    note, tail = kept_by(report)
    assert [cut["reason"] for cut in note["cuts"]] == ["torn tail"]
    assert tail == [spoiled[report["position"] :]]


def test_a_truncated_log_file_is_an_error_with_its_name(crashed: MessageStoreConfig) -> None:
    path = last_log_file(crashed)
    spoil(path, truncated, padded=True)
    with pytest.raises(StoreDamaged, match=path.name):
        opened(crashed)


def kept_by(report: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
    """Return the note of the folder that a log line names, and what its files hold."""
    folder = Path(report["kept_in"])
    note = json.loads((folder / "cut.json").read_text())
    return note, [(folder / cut["kept"]).read_bytes() for cut in note["cuts"]]


def spoil_the_middle(config: MessageStoreConfig) -> list[bytes]:
    """Flip a bit in the second file of a killed store, and make the start read everything. Returns all files."""
    path = files_of(config, "commitlog")[1]
    data = bytearray(path.read_bytes())
    data[30_000] ^= 1
    path.write_bytes(data)
    (config.root / "checkpoint").unlink()
    return [each.read_bytes() for each in files_of(config, "commitlog")]


def test_damage_in_the_middle_of_the_log_is_reported_and_what_lies_behind_is_kept(
    crashed: MessageStoreConfig, caplog: pytest.LogCaptureFixture
) -> None:
    path = files_of(crashed, "commitlog")[1]
    files = [data for data in spoil_the_middle(crashed) if any(data)]
    store = opened(crashed)
    (record,) = [each for each in caplog.records if getattr(each, "event", "") == "commit_log_cut"]
    report = record.__dict__
    assert record.levelno == logging.ERROR
    assert report["path"] == str(path)
    assert 28_000 < report["position"] <= 30_000
    assert report["whole_records_behind"] > 20
    assert report["files_with_records_behind"] == len(files) - 2
    note, kept = kept_by(report)
    assert {cut["reason"] for cut in note["cuts"]} == {"whole records behind damage"}
    assert kept[0] == files[1][report["position"] :]
    assert kept[1:] == files[:1:-1]  # whole files, the last first
    store.close()


def test_whole_records_that_cannot_be_kept_are_not_cut_but_the_start_is_refused(
    crashed: MessageStoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files_of(crashed, "commitlog")[1]
    before = spoil_the_middle(crashed)

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cut_folder.file_bytes, "write_all", full)
        with pytest.raises(StoreDamaged, match=f"{path.name}: damaged at position .* can't be kept"):
            opened(crashed)
    assert [each.read_bytes() for each in files_of(crashed, "commitlog")] == before
    opened(crashed).close()


def test_of_torn_tails_only_the_last_few_are_kept(crashed: MessageStoreConfig) -> None:
    for number in range(log_cut.TORN_FOLDERS_MAX + 3):
        spoil(last_log_file(crashed), flipped, padded=True)
        store = opened(crashed)
        put(store, number)
        store.queue_flusher.finish()
        store.log_flusher.finish()
        store.abandon()
    folders = sorted(crashed.root.parent.glob("store.torn-*"))
    assert len(folders) == log_cut.TORN_FOLDERS_MAX
