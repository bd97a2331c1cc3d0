"""A folder says its format: a newer one is refused untouched, an older one brought up with what changes kept."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from gantrymq import __version__
from store import MessageStore, NewerFormat, StampDamaged
from store.base import file_bytes
from store.inspect.folder import StoreFolder
from store.inspect.repair import RepairOptions, repair_store
from store.startup.format_stamp import (
    STAMP_NAME,
    STORE,
    FolderFormat,
    Stamp,
    Step,
    bring_up_to_date,
    kept_folder,
    read_stamp,
    write_stamp,
)
from tests.store.conftest import OpenStore, message, read_all, small_config
from tests.store.golden import GOLDEN_STORES, unpack


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def shout(folder: Path) -> None:
    for path in folder.glob("*.txt"):
        path.write_text(path.read_text().upper())


PLAIN = FolderFormat("test folder", (Step(lambda folder: []),))
LOUD = FolderFormat("test folder", (*PLAIN.steps, Step(lambda folder: sorted(folder.glob("*.txt")), shout)))


def test_a_new_store_is_stamped_and_opens_again(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path / "store")
    store = open_store(config)
    store.put_message(message())
    store.close()
    assert read_stamp(config.root) == Stamp(STORE.number, __version__)
    assert not kept_folder(config.root, 1).exists()
    assert len(read_all(open_store(config), "T")) == 1


@pytest.mark.parametrize("name", GOLDEN_STORES)
def test_apaches_store_is_stamped_and_what_changes_is_kept(name: str, tmp_path: Path) -> None:
    config = unpack(name, tmp_path)
    before = contents(config.root)
    store = MessageStore(config)
    store.load()
    store.start()
    store.close()
    assert read_stamp(config.root).format == STORE.number
    kept = kept_folder(config.root, 1)
    assert (kept / "checkpoint").read_bytes() == before["checkpoint"]
    assert {path.name: path.read_bytes() for path in (kept / "config").glob("*")} == {
        path.removeprefix("config/"): data
        for path, data in before.items()
        if path.startswith("config/") and path.endswith(".json")
    }


def test_a_newer_store_is_refused_and_nothing_is_changed(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path / "store")
    store = open_store(config)
    store.put_message(message())
    store.close()
    write_stamp(config.root, STORE.number + 1, "2.0.0")
    before = contents(config.root)
    newer = MessageStore(config)
    with pytest.raises(NewerFormat, match=r"store has format 2, written by GantryMQ 2\.0\.0; .* up to 1.*Nothing was"):
        newer.load()
    with pytest.raises(NewerFormat):
        repair_store(config.root, lambda is_ours: StoreFolder(config.root, is_ours=is_ours), RepairOptions())
    assert contents(config.root) == before
    write_stamp(config.root, STORE.number)
    assert len(read_all(open_store(config), "T")) == 1, "the lock is free, nothing is lost"


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": "1", "writtenBy": ""}', '{"format": true, "writtenBy": ""}', "\x00" * 60]
)
def test_a_stamp_that_nobody_can_read_is_no_stamp_of_ours(text: str, tmp_path: Path) -> None:
    (tmp_path / STAMP_NAME).write_text(text)
    with pytest.raises(StampDamaged, match=r"gantry\.format can't be read \(.*remove it if no version newer than"):
        bring_up_to_date(tmp_path, PLAIN)


def test_s66_an_older_folder_goes_step_by_step_and_keeps_what_it_was(tmp_path: Path) -> None:
    """S66: a way back."""
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "b.bin").write_bytes(b"untouched")
    bring_up_to_date(tmp_path, PLAIN)
    assert (tmp_path / "a.txt").read_text() == "hello"
    bring_up_to_date(tmp_path, LOUD)
    bring_up_to_date(tmp_path, LOUD)
    assert (tmp_path / "a.txt").read_text() == "HELLO"
    assert [path.read_text() for path in kept_folder(tmp_path, 2).iterdir()] == ["hello"]
    assert read_stamp(tmp_path).format == 2


def test_a_crash_in_the_middle_of_a_step_keeps_the_first_copy(tmp_path: Path) -> None:
    def half_done(folder: Path) -> None:
        (folder / "a.txt").write_text("HEL")
        raise KeyboardInterrupt

    (tmp_path / "a.txt").write_text("hello")
    bring_up_to_date(tmp_path, PLAIN)
    with pytest.raises(KeyboardInterrupt):
        bring_up_to_date(tmp_path, FolderFormat("test folder", (*PLAIN.steps, Step(LOUD.steps[1].rewrites, half_done))))
    assert read_stamp(tmp_path).format == 1
    bring_up_to_date(tmp_path, LOUD)
    assert (kept_folder(tmp_path, 2) / "a.txt").read_text() == "hello"


def test_a_full_disk_does_not_keep_an_unstamped_store_from_starting(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But nothing is rewritten without its copy."""

    def no_space(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a.txt").write_text("hello")
    with monkeypatch.context() as patch:
        patch.setattr(file_bytes, "sync_folder", no_space)
        bring_up_to_date(tmp_path, PLAIN)
        with pytest.raises(OSError, match="No space"):
            bring_up_to_date(tmp_path, LOUD)
    assert (tmp_path / "a.txt").read_text() == "hello"


def test_the_stamp_is_plain_json(tmp_path: Path) -> None:
    write_stamp(tmp_path, 3, "1.2.3")
    assert json.loads((tmp_path / STAMP_NAME).read_text()) == {"format": 3, "writtenBy": "1.2.3"}
