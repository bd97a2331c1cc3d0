"""Folders that are deleted."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from tests.store.conftest import OpenStore, message, small_config
from tests.waiting import WITHIN_S


def test_no_sync_waits_for_folders_to_be_deleted_and_a_stop_leaves_them_to_the_next_start(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    topics = [f"T{number}" for number in range(6)]
    for topic in topics:
        store.put_message(message(topic=topic))
    store.flush()
    may_delete = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_path, **_how: may_delete.wait())
        try:
            for topic in topics:
                store.delete_topic(topic)
            store.put_message(message())
            store.parts.executor.submit(store.parts.log.sync).result(WITHIN_S)
            assert store.flushed_offset == store.max_physical_offset
        finally:
            may_delete.set()
        store.close()
    assert len(list((tmp_path / "deleted").iterdir())) == 6
    open_store(small_config(tmp_path))
    assert not (tmp_path / "deleted").exists()
