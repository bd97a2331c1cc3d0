"""Every status a put or a get can have, once, by what leads to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from store import GetMessageStatus, MessageStore, PutMessageStatus, RunningFlags, StoreBatch, TagFilter
from store.base.running_state import RunningState
from tests.store.conftest import HOST, Clock, OpenStore, message, small_config


@pytest.mark.parametrize(
    "flag",
    [
        RunningFlags.NOT_WRITEABLE,
        RunningFlags.QUEUE_ERROR,
        RunningFlags.INDEX_ERROR,
        RunningFlags.DISK_FULL,
        RunningFlags.SYNC_ERROR,
    ],
)
def test_put_service_not_available(store: MessageStore, flag: RunningFlags) -> None:
    store.parts.state.set_flag(flag, True)
    assert store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert not store.is_writeable and store.is_readable
    store.parts.state.set_flag(flag, False)
    assert store.put_message(message()).status is PutMessageStatus.PUT_OK


@pytest.mark.parametrize("topic", ["x" * 128, "é" * 64, ""])
def test_put_message_illegal(store: MessageStore, topic: str) -> None:
    assert store.put_message(message(topic=topic)).status is PutMessageStatus.MESSAGE_ILLEGAL


def test_put_os_page_cache_busy_after_a_slow_append_for_as_long_as_it_was_too_slow(
    tmp_path: Path, open_store: OpenStore, clock: Clock
) -> None:
    store = open_store(small_config(tmp_path, page_cache_busy_ms=1000))
    made = StoreBatch("T", 0, encode_batch([Message("T", b"x")]), b"", 0, 0, 1, HOST, HOST)

    def stall(*facts: object) -> None:
        clock.now += 1.5

    store.arrival_listener = stall
    assert store.put_message(message()).status is PutMessageStatus.PUT_OK
    store.arrival_listener = None
    assert store.parts.state.is_page_cache_busy() and store.is_writeable
    assert store.put_message(message()).status is PutMessageStatus.OS_PAGE_CACHE_BUSY
    assert store.put_batch(made).status is PutMessageStatus.OS_PAGE_CACHE_BUSY
    store.parts.state.set_flag(RunningFlags.DISK_FULL, True)
    assert store.put_message(message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    store.parts.state.set_flag(RunningFlags.DISK_FULL, False)
    assert store.put_message(message()).status is PutMessageStatus.OS_PAGE_CACHE_BUSY
    clock.now += 0.4
    assert store.put_message(message()).status is PutMessageStatus.OS_PAGE_CACHE_BUSY
    clock.now += 0.2
    assert store.put_message(message()).status is PutMessageStatus.PUT_OK
    assert store.put_batch(made).status is PutMessageStatus.PUT_OK


def get(store: MessageStore, offset: int, topic: str = "T") -> tuple[GetMessageStatus, int]:
    result = store.get_message("g", topic, 0, offset, 32, None)
    return result.status, result.next_begin_offset


def filled(open_store: OpenStore, root: Path) -> MessageStore:
    """Two and a half files of the queue, four of the log; the queue's units are in its files only."""
    store = open_store(small_config(root))
    for _ in range(250):
        store.put_message(message(bytes(900), tags="A"))
    store.flush()
    queue = store.parts.queues.find("T", 0)
    assert queue is not None
    queue.trim(0)
    return store


def lose_queue_file(store: MessageStore) -> None:
    queue = store.parts.queues.find("T", 0)
    assert queue is not None
    queue._descriptors.close()
    queue.path_of(0).unlink()


def lose_log_file(store: MessageStore) -> None:
    store.parts.log.queue.files.pop(0).delete()


def lose_log(store: MessageStore) -> None:
    while store.parts.log.queue.files:
        lose_log_file(store)


def nothing(store: MessageStore) -> None:
    return


@pytest.mark.parametrize(
    ("before", "offset", "expected"),
    [
        (nothing, 0, (GetMessageStatus.FOUND, 32)),
        (nothing, -1, (GetMessageStatus.OFFSET_TOO_SMALL, 0)),
        (nothing, 250, (GetMessageStatus.OFFSET_OVERFLOW_ONE, 250)),
        (nothing, 251, (GetMessageStatus.OFFSET_OVERFLOW_BADLY, 250)),
        (lose_queue_file, 3, (GetMessageStatus.OFFSET_FOUND_NULL, 100)),
        # the log's file is gone, the queue's minimum not yet corrected: pass over what is gone, take what follows
        (lose_log_file, 3, (GetMessageStatus.FOUND, 97)),
        (lose_log, 3, (GetMessageStatus.MESSAGE_WAS_REMOVING, 250)),
    ],
)
def test_get(
    tmp_path: Path,
    open_store: OpenStore,
    before: Callable[[MessageStore], None],
    offset: int,
    expected: tuple[GetMessageStatus, int],
) -> None:
    store = filled(open_store, tmp_path)
    before(store)
    assert get(store, offset) == expected


def test_get_no_matched_message_goes_on_behind_what_it_looked_at(tmp_path: Path, open_store: OpenStore) -> None:
    store = filled(open_store, tmp_path)
    result = store.get_message("g", "T", 0, 0, 32, TagFilter(frozenset({1})))
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 250)


def test_get_no_message_in_queue_is_said_of_an_unknown_queue_too(store: MessageStore) -> None:
    """NO_MATCHED_LOGIC_QUEUE is never said: RocketMQ makes the queue it is asked for, and finds it empty."""
    assert get(store, 0, "Nobody") == (GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0)


def test_a_cold_read_is_bounded_in_bytes(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, transfer_bytes_in_disk_max=2500))
    for _ in range(8):
        store.put_message(message(bytes(900)))
    store.limits = store.limits._replace(hot_bytes=0)
    assert store.get_message("g", "T", 0, 0, 32).message_count == 2


@pytest.mark.parametrize(
    ("append_s", "busy_s"), [(0.9, 0.0), (1.0, 0.0), (1.25, 0.25), (1.75, 0.75), (2.0, 1.0), (2.5, 1.0), (30.0, 1.0)]
)
def test_senders_are_sent_away_for_what_an_append_took_too_long_but_not_beyond_the_limit(
    append_s: float, busy_s: float
) -> None:
    """They stood in the sockets while it lasted: who waited half a minute need not wait another."""
    now = [100.0]
    state = RunningState(1000, lambda: now[0])
    state.serve(True)
    state.note_append(append_s)
    assert (state.refusal is PutMessageStatus.OS_PAGE_CACHE_BUSY) == (busy_s > 0)
    now[0] += busy_s - 0.125
    assert (state.still_refusing() is not None) == (busy_s > 0)
    now[0] += 0.125
    assert state.still_refusing() is None
