"""What a start erases behind the log's end: at no moment may a crash find a hole between files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store import MessageStoreConfig
from store.base import file_bytes
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
