"""A queue that a copy's log begins again while a thread writes its units: nothing of before comes back."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store import MessageStore
from store.base import file_bytes
from store.queues.consume_queue import UNIT, ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable, WriteJob, write_jobs
from tests.store.conftest import OpenStore, bodies, message, small_config

BEFORE = 2100  # more units than a busy queue keeps in memory
AGAIN = 3


@pytest.fixture
def begun_again(tmp_path: Path, open_store: OpenStore) -> tuple[bytes, int]:
    """A master's log, in which a topic is made again, and where that begins."""
    master = open_store(small_config(tmp_path / "master", commit_log_file_bytes=1 << 20))
    for number in range(BEFORE):
        master.put_message(message(b"%d before" % number, topic="T"))
    at = master.max_physical_offset
    master.delete_topic("T")
    for number in range(AGAIN):
        master.put_message(message(b"%d again" % number, topic="T"))
    master.put_message(message(b"last", topic="Other"))  # so that a clean start dispatches none of these once more
    log = (master.config.root / "commitlog" / f"{0:020d}").read_bytes()
    return log[: master.max_physical_offset], at


@pytest.fixture(params=[False, True], ids=["units", "with extension"])
def copy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], MessageStore]]:
    """Opens the copy; what is open is closed first."""
    config = small_config(tmp_path / "copy", commit_log_file_bytes=1 << 20, consume_queue_ext_enable=request.param)
    opened: list[MessageStore] = []

    def open_() -> MessageStore:
        for store in opened:
            store.close()
        opened[:] = [MessageStore(config, is_copy=True)]
        opened[0].load()
        opened[0].start()
        return opened[0]

    yield open_
    opened[0].close()


def of_before(copy: Callable[[], MessageStore], log: bytes) -> tuple[MessageStore, ConsumeQueueTable]:
    """A copy of what came before, and its queues."""
    store = copy()
    store.copy.append_raw(0, log)
    return store, store.parts.queues


def written_before(jobs: list[WriteJob], begin_again: Callable[[], None]) -> None:
    write_jobs(jobs)
    begin_again()


def written_later(jobs: list[WriteJob], begin_again: Callable[[], None]) -> None:
    begin_again()
    write_jobs(jobs)


@pytest.mark.parametrize("write", [written_before, written_later])
@pytest.mark.parametrize("end", [ConsumeQueueTable.jobs_done, ConsumeQueueTable.jobs_failed])
def test_a_queue_that_begins_again_while_it_is_written_has_only_what_is_new(
    begun_again: tuple[bytes, int],
    copy: Callable[[], MessageStore],
    write: Callable[[list[WriteJob], Callable[[], None]], None],
    end: Callable[[ConsumeQueueTable, list[WriteJob]], None],
) -> None:
    log, at = begun_again
    store, queues = of_before(copy, log[:at])
    jobs = queues.take_jobs()
    write(jobs, lambda: store.copy.append_raw(at, log[at:]))
    end(queues, jobs)
    again = [b"%d again" % number for number in range(AGAIN)]
    assert bodies(store) == again
    queues.jobs_done(_written(queues))
    assert bodies(store) == again
    assert queues.files_below(store.max_physical_offset) == 2
    for _ in range(2):
        store = copy()
        assert bodies(store) == again
        assert store.max_offset("T", 0) == AGAIN


@pytest.mark.parametrize("is_known", [True, False])
def test_units_of_a_write_that_failed_half_way_do_not_come_back(
    begun_again: tuple[bytes, int], copy: Callable[[], MessageStore], monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """is_known: the loop has heard of the failure before the queue begins again."""
    log, at = begun_again
    store, queues = of_before(copy, log[:at])
    jobs = queues.take_jobs()
    with monkeypatch.context() as patch:
        patch.setattr(ConsumeQueue, "write_out", _half_written)
        with pytest.raises(OSError, match="full"):
            write_jobs(jobs)
    if is_known:
        queues.jobs_failed(jobs)
    store.copy.append_raw(at, log[at:])
    if not is_known:
        queues.jobs_failed(jobs)
    queues.jobs_done(_written(queues))
    for _ in range(2):
        store = copy()
        assert store.max_offset("T", 0) == AGAIN
        assert bodies(store) == [b"%d again" % number for number in range(AGAIN)]


_write_out = ConsumeQueue.write_out


def _half_written(queue: ConsumeQueue, index: int, fillers: int, units: bytes) -> list[Path]:
    _write_out(queue, index, fillers, units[: BEFORE // 2 * UNIT.size])
    raise OSError(errno.ENOSPC, "full")


@pytest.mark.parametrize(("module", "name"), [(Path, "unlink"), (file_bytes, "sync_folder")])
def test_a_cut_that_the_disk_refuses_is_repeated(
    begun_again: tuple[bytes, int],
    copy: Callable[[], MessageStore],
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
) -> None:
    log, at = begun_again
    store, queues = of_before(copy, log[:at])
    queues.jobs_done(_written(queues))
    with monkeypatch.context() as patch:
        patch.setattr(module, name, _refused)
        with pytest.raises(OSError, match="refused"):
            store.copy.append_raw(at, log[at:])
    store.copy.append_raw(store.copy.end, log[store.copy.end :])
    queues.jobs_done(_written(queues))
    assert queues.files_below(store.max_physical_offset) == 2
    for _ in range(2):
        assert store.max_offset("T", 0) == AGAIN
        assert bodies(store) == [b"%d again" % number for number in range(AGAIN)]
        store = copy()


def _refused(*_: Any, **__: Any) -> None:
    raise OSError(errno.EIO, "refused")


def _written(queues: ConsumeQueueTable) -> list[WriteJob]:
    jobs = queues.take_jobs()
    write_jobs(jobs)
    return jobs
