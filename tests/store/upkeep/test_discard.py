"""Folders that are deleted."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from store.queues.consume_queue_table import write_jobs
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


@pytest.mark.parametrize("is_full", [False, True])
def test_what_a_write_makes_of_a_topic_that_was_deleted_meanwhile_goes_too(
    tmp_path: Path, open_store: OpenStore, *, is_full: bool
) -> None:
    """Made again, the topic must not find units of before."""
    store = open_store(small_config(tmp_path, consume_queue_ext_enable=True))
    store.put_message(message(topic="Gone"))
    queues = store.parts.queues
    jobs = queues.take_jobs()
    store.delete_topic("Gone")
    write_jobs(jobs)
    assert (tmp_path / "consumequeue_ext" / "Gone" / "0").exists()
    if is_full:
        queues.jobs_failed(jobs)
    else:
        queues.jobs_done(jobs)
    assert not (tmp_path / "consumequeue" / "Gone" / "0").exists()
    assert not (tmp_path / "consumequeue_ext" / "Gone" / "0").exists()
