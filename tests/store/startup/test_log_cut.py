"""What a start erases behind the log's end: at no moment may a crash find a hole between files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store import MessageStore, MessageStoreConfig
from store.base import cut_folder, file_bytes
from store.base.cut_folder import CutFolder
from store.index.service import IndexService
from tests.store.conftest import OpenStore, message

FILE_BYTES = 65536


@pytest.mark.parametrize("files_damaged_from", [0, 1])
def test_no_file_is_missing_in_between_while_files_are_cut(
    small: MessageStoreConfig, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, files_damaged_from: int
) -> None:
    store = open_store(small)
    while store.max_physical_offset < 3 * FILE_BYTES:
        store.put_message(message(b"x" * 1000))
    store.abandon()
    folder = small.root / "commitlog"
    for made_in_advance in range(2):
        path = folder / f"{(len(list(folder.iterdir()))) * FILE_BYTES:020d}"
        path.touch()
        os.truncate(path, FILE_BYTES if made_in_advance else 0)
    for path in sorted(folder.iterdir())[files_damaged_from:1]:
        with path.open("r+b") as file:
            file.seek(5000)
            file.write(bytes(3000))
    (small.root / "checkpoint").unlink(missing_ok=True)
    before, seen = len(list(folder.iterdir())), []
    unlink, sync = Path.unlink, file_bytes.sync_folder

    def look() -> None:
        bases = sorted(int(path.name) for path in folder.iterdir())
        assert bases == [number * FILE_BYTES for number in range(len(bases))]
        seen.append(len(bases))

    def unlink_and_look(path: Path, missing_ok: bool = False) -> None:
        unlink(path, missing_ok=missing_ok)
        look()

    def look_and_sync(folder: Path) -> None:
        look()
        sync(folder)

    monkeypatch.setattr(Path, "unlink", unlink_and_look)
    monkeypatch.setattr(file_bytes, "sync_folder", look_and_sync)
    store = open_store(small)
    assert seen and min(seen) < before
    monkeypatch.undo()
    store.put_message(message(b"goes on"))


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_while_the_log_is_cut_leaves_no_key_behind_its_end(
    small: MessageStoreConfig, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small)
    places = [store.put_message(message(b"x" * 500, keys=f"k{number}")).physical_offset for number in range(20)]
    store.close()

    def die(*_: object) -> None:
        raise Killed

    store = MessageStore(small)
    with monkeypatch.context() as patch:
        patch.setattr(IndexService, "recover", die)
        with pytest.raises(Killed):
            store.load(cut_to=places[10])
    store.parts.index.close()
    store.parts.log.close()
    store = MessageStore(small)
    store.load(cut_to=places[10])
    store.start()
    assert store.max_physical_offset == places[10]
    for number in range(20, 25):
        store.put_message(message(b"y" * 500, keys=f"k{number}"))
    found = {number for number in range(25) if store.query_message("T", f"k{number}", 9, 0, 1 << 62).buffers}
    assert found == {*range(10), *range(20, 25)}
    store.close()


def test_what_is_kept_on_another_disk_is_there_before_it_goes_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "store" / "commitlog" / "0"
    source.parent.mkdir(parents=True)
    source.write_bytes(b"records")
    synced: list[bool] = []

    def other_disk(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(Path, "rename", other_disk)
    monkeypatch.setattr(cut_folder.file_bytes, "sync_file_system", lambda folder: synced.append(source.exists()))
    folder = CutFolder(tmp_path / "store")
    folder.keep_whole(source, 0, "test")
    assert synced == [True] and not source.exists()
    assert (folder.path / "commitlog" / "0").read_bytes() == b"records"
