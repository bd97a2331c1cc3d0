"""What a start finds out, as a value, before it changes a byte; and what it makes of a plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from store import MessageStore, MessageStoreConfig
from store.base.delay import DelayLevels
from store.base.running_state import RunningState
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.queues.consume_queue_table import ConsumeQueueTable
from store.queues.tags import TagsCodes
from store.startup.checkpoint import NOT_SYNCED, Checkpoint
from store.startup.dispatch import Dispatcher
from store.startup.recovery import Before, HeldUnits, Plan, StoreFiles, apply, look_after_clean_stop, look_after_crash
from tests.store.conftest import OpenStore, message

COUNT = 6
NOTHING_KNOWN = Before(synced_end=0, is_short=False, torn={})


@contextlib.contextmanager
def loaded(config: MessageStoreConfig) -> Iterator[tuple[StoreFiles, Dispatcher]]:
    """The parts of a folder as a start has them when it looks."""
    log, queues = CommitLog(config), ConsumeQueueTable(config.root / "consumequeue", config)
    index = IndexService(config.root / "index", config, lambda: 1e9)
    checkpoint = Checkpoint(config.root / "checkpoint")
    checkpoint.load()
    log.load()
    queues.load(0)
    index.load()
    tags_codes = TagsCodes(DelayLevels(config.delay_levels))
    state = RunningState(config.page_cache_busy_ms, lambda: 0.0)
    dispatcher = Dispatcher(log, queues, index, tags_codes, state, ext_enable=False)
    try:
        yield StoreFiles(config.root, log, queues, index, checkpoint), dispatcher
    finally:
        log.close()
        queues.close()
        index.close()


def filled(store: MessageStore) -> list[int]:
    """Put messages into two queues by turns; return where each record starts, and where the last ends."""
    starts = [
        store.put_message(message(b"%d" % number, queue_id=number % 2)).physical_offset for number in range(COUNT)
    ]
    return [*starts, store.max_physical_offset]


@pytest.fixture
def starts(small: MessageStoreConfig, open_store: OpenStore) -> list[int]:
    """Of a store that was stopped cleanly."""
    store = open_store(small)
    found = filled(store)
    store.close()
    return found


def log_bytes(config: MessageStoreConfig) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(config.commit_log_folders[0].iterdir()))


def queue_bytes(config: MessageStoreConfig) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted((config.root / "consumequeue").rglob("*")) if path.is_file()}


def damage(config: MessageStoreConfig, physical_offset: int) -> None:
    """Have the record there say another physical offset than its own."""
    with sorted(config.commit_log_folders[0].iterdir())[0].open("r+b") as file:
        file.seek(physical_offset + 28)
        file.write(b"\xff")


def by_id(plan: Plan) -> dict[int, int]:
    return {queue.queue_id: index for queue, index in plan.lacking.items()}


def test_after_a_clean_stop_everything_is_there(small: MessageStoreConfig, starts: list[int]) -> None:
    with loaded(small) as (files, _dispatcher):
        assert look_after_clean_stop(files, NOTHING_KNOWN, check_crc=True) == Plan(starts[-1], starts[-1], {})


def test_after_a_clean_stop_a_missing_queue_is_lacking_from_its_first_index_on(
    small: MessageStoreConfig, starts: list[int]
) -> None:
    for path in (small.root / "consumequeue/T/1").iterdir():
        path.unlink()
    held = queue_bytes(small)
    with loaded(small) as (files, _dispatcher):
        plan = look_after_clean_stop(files, NOTHING_KNOWN, check_crc=True)
        assert (plan.log_end, by_id(plan), plan.unsynced_from) == (starts[-1], {1: 0}, None)
    assert queue_bytes(small) == held


def test_what_the_queues_never_heard_of_is_left_to_be_fed(small: MessageStoreConfig, starts: list[int]) -> None:
    """RocketMQ may stop like that."""
    with loaded(small) as (files, _dispatcher):
        for queue in files.queues:
            queue.cut_physical(starts[3])
        files.checkpoint.synced = NOT_SYNCED
        plan = look_after_clean_stop(files, NOTHING_KNOWN, check_crc=True)
        assert (plan.log_end, plan.fed_to, plan.lacking) == (starts[-1], starts[3], {})


@pytest.mark.parametrize("torn_at", [COUNT, COUNT - 1, 2, 0])
def test_after_a_crash_the_log_ends_before_the_first_record_that_is_not_valid(
    small: MessageStoreConfig, open_store: OpenStore, torn_at: int
) -> None:
    store = open_store(small)
    starts = filled(store)
    store.abandon()
    if torn_at < COUNT:
        damage(small, starts[torn_at])
    before = log_bytes(small)
    with loaded(small) as (files, dispatcher):
        plan = look_after_crash(files, NOTHING_KNOWN, dispatcher, lambda: None, check_crc=True)
        end = starts[torn_at]
        assert plan == Plan(end, end, {}, unsynced_from=0)
        assert {queue.queue_id: queue.next_index for queue in files.queues if queue.next_index} == {
            queue_id: count for queue_id, count in ((0, (torn_at + 1) // 2), (1, torn_at // 2)) if count
        }
        assert files.checkpoint.synced == NOT_SYNCED
    assert log_bytes(small) == before, "a look erases nothing"


def test_after_a_crash_what_the_files_held_is_noted(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    filled(store)
    store.close()
    held = queue_bytes(small)
    with loaded(small) as (files, dispatcher):
        plan = look_after_crash(files, NOTHING_KNOWN, dispatcher, lambda: None, check_crc=True)
        assert {queue.queue_id: units.end_index for queue, units in plan.fed_again.items()} == {0: 3, 1: 3}
        assert all(isinstance(units, HeldUnits) for units in plan.fed_again.values())
        apply(plan, files, dispatcher)
        assert [queue.written_index for queue in files.queues] == [3, 3], "they hold just that: nothing is written"
    assert queue_bytes(small) == held


def test_after_a_crash_reading_starts_where_everything_was_on_disk(
    small: MessageStoreConfig, starts: list[int]
) -> None:
    with loaded(small) as (files, dispatcher):
        known = Before(synced_end=starts[4], is_short=False, torn={})
        plan = look_after_crash(files, known, dispatcher, lambda: None, check_crc=True)
        assert (plan.unsynced_from, plan.log_end, plan.lacking) == (starts[4], starts[-1], {})
        assert {queue.queue_id: units.end_index for queue, units in plan.fed_again.items()} == {0: 3, 1: 3}


def test_after_a_crash_a_queue_that_ends_too_early_is_lacking(small: MessageStoreConfig, starts: list[int]) -> None:
    """Reading from where everything was on disk does not give it what it lost before."""
    with loaded(small) as (files, dispatcher):
        (first, _second) = sorted(files.queues, key=lambda queue: queue.queue_id)
        first.cut(1)
        known = Before(synced_end=starts[4], is_short=False, torn={first: 1})
        plan = look_after_crash(files, known, dispatcher, lambda: None, check_crc=True)
        assert by_id(plan) == {0: 1}


def test_a_plan_ends_log_and_queues_at_the_same_message(small: MessageStoreConfig, starts: list[int]) -> None:
    with loaded(small) as (files, dispatcher):
        apply(Plan(starts[3], starts[3], {}), files, dispatcher)
        assert files.log.position == starts[3]
        assert {queue.queue_id: queue.next_index for queue in files.queues} == {0: 2, 1: 1}
        assert files.checkpoint.synced == NOT_SYNCED, "the seal spoke of a longer log"
    assert not any(log_bytes(small)[starts[3] :])


def test_a_plan_gives_a_queue_what_it_lacks_and_no_other(small: MessageStoreConfig, starts: list[int]) -> None:
    held = queue_bytes(small)
    with loaded(small) as (files, dispatcher):
        queues = {queue.queue_id: queue for queue in files.queues}
        queues[1].cut(1)
        apply(Plan(starts[-1], starts[-1], {queues[0]: 1}), files, dispatcher)
        assert (queues[0].next_index, queues[1].next_index) == (3, 1)
    assert {path: data for path, data in queue_bytes(small).items() if path.parent.name == "0"} == {
        path: data for path, data in held.items() if path.parent.name == "0"
    }
