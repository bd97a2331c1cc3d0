"""What is deleted, and what never is."""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

import pytest

from gantrymq.errors import ConfigError
from gantrymq.message.topics import SCHEDULE_TOPIC
from store import RunningFlags
from store.log.commit_log import CommitLog
from store.log.mapped_file import MappedFile
from store.queues.consume_queue import ConsumeQueue
from store.startup.checkpoint import Checkpoint
from store.upkeep import retention
from store.upkeep.disk_space import disk_ratio
from tests.store.conftest import OpenStore, message
from tests.store.upkeep.ageing import NOON, age, aged, fill, hour_of, other_hour, small_config
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.usefixtures("half_full")


async def test_old_files_go_at_the_set_hour_and_queues_follow(tmp_path: Path, open_store: OpenStore) -> None:
    store = aged(open_store, tmp_path, delete_when=hour_of(NOON))
    files = len(store.parts.log.queue.files)
    assert await store.cleaner.clean(NOON, 0.1) == files - 1
    assert store.min_physical_offset == (files - 1) * 65536
    first = store.min_offset("T", 0)
    assert first > 200
    assert store.get_message("g", "T", 0, first, 32).message_count
    assert store.consume_queue_units("T", 0, 0, 1) == []
    assert len(list((tmp_path / "consumequeue" / "T" / "0").iterdir())) == 3 - first // 100
    store.close()
    again = open_store(store.config)
    assert again.min_offset("T", 0) == first
    assert again.max_offset("T", 0) == 300


async def test_readers_keep_what_they_hold(tmp_path: Path, open_store: OpenStore) -> None:
    store = aged(open_store, tmp_path, 100)
    held = store.get_message("g", "T", 0, 0, 1).buffers[0]
    before = bytes(held)
    assert await store.cleaner.clean(NOON, 0.99) > 0
    assert bytes(held) == before
    assert store.message_bytes(0) is None


async def test_the_disk_full_flag_comes_and_goes(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.91)
    store.cleaner.check_space()
    assert store.flags & RunningFlags.DISK_FULL and not store.is_writeable
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.89)
    store.cleaner.check_space()
    assert store.is_writeable


async def test_queues_whose_messages_all_expired_are_removed_on_demand(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    store.put_message(message(topic="Old"))
    fill(store)
    age(config, NOON, 100)
    await store.cleaner.clean(NOON, 0.99)
    assert await store.clean_expired_queues() == 1
    assert store.topics() == {"T", "Quiet"}
    assert not (tmp_path / "consumequeue" / "Old" / "0").exists()


def test_a_folder_to_come_counts_as_its_parent(tmp_path: Path) -> None:
    assert disk_ratio(tmp_path / "a" / "b") == disk_ratio(tmp_path) >= 0


async def test_the_log_is_kept_below_a_size_whatever_the_hour_and_age(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, delete_when=other_hour(NOON), store_bytes_max=150_000))
    fill(store)
    assert await store.cleaner.clean(NOON, 0.1) == 3
    assert store.max_physical_offset - store.min_physical_offset <= 150_000
    assert await store.cleaner.clean(NOON, 0.1) == 0


async def test_the_file_being_written_and_files_not_on_disk_always_stay(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, store_bytes_max=1))
    for _ in range(300):
        store.put_message(message(bytes(1000)))
    assert await store.cleaner.clean(NOON, 0.99) == 0
    store.log_flusher.finish()
    assert await store.cleaner.clean(NOON, 0.99) == 4
    assert len(store.parts.log.queue.files) == 1
    assert store.put_message(message()).queue_offset == 300


async def test_at_most_ten_files_go_in_a_round(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store(small_config(tmp_path, delete_log_files_pause_ms=0))
    for _ in range(24):
        store.put_message(message(bytes(40_000)))
    store.log_flusher.finish()
    assert [await store.cleaner.clean(NOON, 0.99) for _ in range(4)] == [10, 10, 3, 0]


async def test_a_file_that_resists_ends_the_round_and_stays_readable(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    fill(store)

    def denied(self: MappedFile) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(MappedFile, "delete", denied)
    assert await store.cleaner.clean(NOON, 0.99) == 0
    assert store.get_message("g", "T", 0, 0, 1).message_count == 1
    monkeypatch.undo()
    assert await store.cleaner.clean(NOON, 0.99) == 5


async def test_a_file_somebody_else_deleted_is_let_go(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    fill(store)
    (config.commit_log_folders[0] / f"{0:020d}").unlink()
    assert await store.cleaner.clean(NOON, 0.1) == 1
    assert store.min_physical_offset == 65536


async def test_a_disk_that_does_not_answer_changes_no_flag_and_comes_back(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = aged(open_store, tmp_path, delete_when=other_hour(NOON))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: -1.0)
    assert store.cleaner.check_space() == -1.0
    assert store.is_writeable
    assert await store.cleaner.clean(NOON, -1.0) == 5  # as RocketMQ: what has expired goes then too
    monkeypatch.undo()
    assert store.cleaner.check_space() >= 0


async def test_full_queues_alone_make_a_store_full(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(small_config(tmp_path))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.95 if path.name == "consumequeue" else 0.1)
    store.cleaner.check_space()
    assert not store.is_writeable


async def test_of_several_folders_the_roomiest_decides(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    store = open_store(small_config(tmp_path / "store", commit_log=Path(folders)))
    monkeypatch.setattr(retention, "disk_ratio", lambda path: 0.95 if path.name == "a" else 0.5)
    assert store.cleaner.check_space() == 0.5
    assert store.is_writeable
    assert store.parts.log.queue.full_folders == {tmp_path / "a"}


async def test_a_running_store_obeys_an_operator_at_once(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path, delete_when=other_hour(time.time()))
    store = open_store(config)  # its first round by itself is after a minute
    fill(store)
    age(config, time.time(), 73)
    cleaning = asyncio.create_task(store.cleaner.run())
    await asyncio.sleep(0.05)  # nothing may go before the operator asks
    assert store.min_physical_offset == 0
    store.cleaner.delete_soon()
    async with asyncio.timeout(WITHIN_S):
        while len(store.parts.log.queue.files) > 1:
            await asyncio.sleep(0.01)
    cleaning.cancel()
    forecast_before = store.cleaner.forecast().next_mark
    object.__setattr__(config, "disk_max_used_percent", 12)  # as request 25 does it
    object.__setattr__(config, "forcibly_ratio", 0.995)
    object.__setattr__(config, "warning_ratio", 0.995)
    assert forecast_before in (0.75, 0.85, 0.9, None)
    assert store.cleaner.forecast().next_mark in (0.12, 0.995, None), "the forecast goes by the marks in force"


async def test_a_deleted_topics_files_are_gone_at_once_and_it_may_come_back(
    tmp_path: Path, open_store: OpenStore
) -> None:
    store = open_store(small_config(tmp_path))
    fill(store)
    store.delete_topic("T")
    assert not (tmp_path / "consumequeue" / "T").exists()
    assert store.put_message(message()).queue_offset == 0
    store.parts.deleter.submit(int).result()
    assert list((tmp_path / "deleted").iterdir()) == []
    store.close()
    (tmp_path / "deleted" / "7").mkdir()
    assert open_store(small_config(tmp_path)).max_offset("T", 0) == 1
    assert not (tmp_path / "deleted").exists()


async def test_a_queue_that_can_not_be_read_keeps_no_other_from_being_cleaned(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small_config(tmp_path)
    store = open_store(config)
    store.put_message(message(topic="First"))
    fill(store)
    age(config, NOON, 73)
    correct = ConsumeQueue.correct_min

    def fail_first(queue: ConsumeQueue, min_physical_offset: int) -> None:
        if queue.topic == "First":
            raise OSError(errno.EIO, "Input/output error")
        correct(queue, min_physical_offset)

    monkeypatch.setattr(ConsumeQueue, "correct_min", fail_first)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            await store.cleaner.clean(NOON, 0.8)
    assert store.min_offset("T", 0) > 200


async def test_queues_that_could_not_be_looked_at_are_cleaned_in_the_next_round(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = aged(open_store, tmp_path)

    def fail(queue: ConsumeQueue, min_physical_offset: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(ConsumeQueue, "correct_min", fail)
        with pytest.raises(OSError, match="Too many"):
            await store.cleaner.clean(NOON, 0.8)
    assert store.min_physical_offset > 0
    await store.cleaner.clean(NOON, 0.8)
    assert store.min_offset("T", 0) > 200
    assert len(list((tmp_path / "consumequeue" / "T" / "0").iterdir())) == 1


@pytest.mark.parametrize("text", ["24", "4am", "-1"])
def test_an_hour_that_does_not_exist_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="deleteWhen"):
        small_config(tmp_path, delete_when=text)


async def test_a_queue_goes_when_its_last_message_ends_where_the_log_begins_now(
    tmp_path: Path, open_store: OpenStore
) -> None:
    """Not a message earlier; a queue that never had one, and those of delayed messages, stay."""
    store = open_store(small_config(tmp_path))
    for topic in ("Old", "Older", SCHEDULE_TOPIC):
        store.put_message(message(topic=topic))
    store.parts.queues.queue("Empty", 0)
    slot = {topic: store.parts.queues.find(topic, 0) for topic in ("Old", "Older", "Empty", SCHEDULE_TOPIC)}
    end = slot["Old"].max_physical_offset  # type: ignore[union-attr]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommitLog, "min_offset", end - 1)
        assert await store.clean_expired_queues() == 0
        patch.setattr(CommitLog, "min_offset", end)
        assert await store.clean_expired_queues() == 1
        assert store.topics() >= {"Older", SCHEDULE_TOPIC} and "Old" not in store.topics()
        patch.setattr(CommitLog, "min_offset", store.parts.log.position)
        assert await store.clean_expired_queues() == 1
        assert (
            store.parts.queues.find("Empty", 0) is not None and store.parts.queues.find(SCHEDULE_TOPIC, 0) is not None
        )


@pytest.mark.parametrize("is_cut_short", [False, True])
async def test_what_expired_is_not_missed_by_the_next_start(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, is_cut_short: bool
) -> None:
    """Also when the process dies between writing down where the log begins and deleting the file."""
    store = aged(open_store, tmp_path, delete_when=hour_of(NOON))
    delete = MappedFile.delete
    deleted: list[int] = []

    def dying(file: MappedFile) -> None:
        kept = Checkpoint(tmp_path / "checkpoint")
        kept.load()
        assert kept.kept_from >= file.end  # on disk before the file goes
        if is_cut_short and deleted:
            raise KeyboardInterrupt
        deleted.append(file.base)
        delete(file)

    monkeypatch.setattr(MappedFile, "delete", dying)
    if is_cut_short:
        with pytest.raises(KeyboardInterrupt):
            await store.cleaner.clean(NOON, 0.1)
    else:
        await store.cleaner.clean(NOON, 0.1)
    monkeypatch.undo()
    store.abandon()
    again = open_store(store.config)
    assert again.min_physical_offset == deleted[-1] + 65536
    assert again.checkpoint.kept_from == again.min_physical_offset


async def test_a_full_disk_that_takes_no_checkpoint_is_cleaned_all_the_same(
    tmp_path: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = aged(open_store, tmp_path, delete_when=hour_of(NOON))
    files = len(store.parts.log.queue.files)
    failure = OSError(errno.EIO, "broken")
    with monkeypatch.context() as patched:
        patched.setattr(store.checkpoint, "save", lambda: (_ for _ in ()).throw(failure))
        assert await store.cleaner.clean(NOON, 0.1) == 0
        failure.errno = errno.ENOSPC
        assert await store.cleaner.clean(NOON, 0.1) == files - 1
