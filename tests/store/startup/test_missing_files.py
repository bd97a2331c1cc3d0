"""Files that are gone: a start says so, or makes them anew from what it has. It never goes on as if nothing were lost.

RocketMQ takes a queue's last unit for the truth: where the file with it is missing, stored messages can't be reached
any more, and their queue offsets are given out again. Without a commit log file it deletes all consume queues.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from store import MessageStore, MessageStoreConfig, StoreDamaged
from store.inspect.check import check_store
from store.inspect.findings import Level
from store.inspect.folder import StoreFolder
from store.inspect.repair import RepairOptions, RepairRefused, plan_repair, repair_store
from store.inspect.verify import verify_store
from tests.store.conftest import OpenStore, message, opened, read_all, small_config
from tests.store.golden import commit_log_records
from tests.waiting import Clock

COUNT = 400
SKIP_LOST = RepairOptions(skip_lost=True)
Spoil = Callable[[Path], None]


def put(store: MessageStore, numbers: range) -> None:
    for number in numbers:
        body = b"%06d" % number + bytes(900)
        assert store.put_message(message(body, queue_id=number % 2, keys=f"k{number}")).status == 0


def numbers_of(store: MessageStore) -> list[int]:
    return sorted(int(raw[88:94]) for queue_id in (0, 1) for raw in read_all(store, "T", queue_id))


def fill(store: MessageStore) -> None:
    put(store, range(COUNT))
    store.flush()


@functools.cache
def written(end: str) -> Path:
    """Seven log files, two queues of two files each, written once for all tests, in the folder of this run."""
    config, clock = small_config(Path(tempfile.mkdtemp())), Clock(1_700_000_000.0)
    store = opened(config, clock=clock, monotonic=clock)
    fill(store)
    if end == "stopped":
        store.close()
    else:
        store.abandon()
    return config.root


@pytest.fixture(params=["stopped", "killed"])
def filled(request: pytest.FixtureRequest, small: MessageStoreConfig) -> MessageStoreConfig:
    shutil.copytree(written(request.param), small.root)
    return small


@pytest.fixture
def stopped(small: MessageStoreConfig) -> MessageStoreConfig:
    shutil.copytree(written("stopped"), small.root)
    return small


def log_file(root: Path, number: int) -> Path:
    return root / "commitlog" / f"{number * 65536:020d}"


def queue_file(root: Path, queue_id: int, number: int) -> Path:
    return root / "consumequeue" / "T" / str(queue_id) / f"{number * 2000:020d}"


# -- consume queues ---------------------------------------------------------------------------------------------------


def without_first(root: Path) -> None:
    queue_file(root, 0, 0).unlink()


def without_last(root: Path) -> None:
    queue_file(root, 0, 1).unlink()


def without_one_queue(root: Path) -> None:
    shutil.rmtree(queue_file(root, 0, 0).parent)


def without_topic_of_several(root: Path) -> None:
    without_first(root)
    shutil.rmtree(queue_file(root, 1, 0).parent)


def without_all_queues(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


@pytest.mark.parametrize(
    "spoil", [without_first, without_last, without_one_queue, without_topic_of_several, without_all_queues]
)
def test_queue_files_that_are_gone_are_made_anew(
    filled: MessageStoreConfig, open_store: OpenStore, spoil: Spoil
) -> None:
    spoil(filled.root)
    store = open_store(filled)
    assert numbers_of(store) == list(range(COUNT))
    assert [store.min_offset("T", queue_id) for queue_id in (0, 1)] == [0, 0]
    assert store.put_message(message(b"next")).queue_offset == COUNT // 2


def swap(one: Path, other: Path) -> None:
    between = one.with_suffix(".swap")
    one.rename(between)
    other.rename(one)
    between.rename(other)


@pytest.mark.parametrize("is_stopped", [True, False])
@pytest.mark.parametrize("numbers", [(0, 0), (1, 1), (0, 1)])
@pytest.mark.parametrize("is_same_queue", [True, False])
def test_queue_files_that_were_exchanged_are_found_and_made_anew(
    small: MessageStoreConfig, open_store: OpenStore, is_stopped: bool, numbers: tuple[int, int], is_same_queue: bool
) -> None:
    """Units of another queue name whole records: consumers would be given its messages."""
    if is_same_queue and numbers != (0, 1):
        numbers = (0, 1)
    store = open_store(small)
    put(store, range(COUNT + 50))
    if is_stopped:
        store.close()
    else:
        killed_after_sync(store)
    swap(queue_file(small.root, 0, numbers[0]), queue_file(small.root, 1 - is_same_queue, numbers[1]))
    with StoreFolder(small.root) as folder:
        assert check_store(folder).findings.of("queue_end")
    again = open_store(small)
    for queue_id in (0, 1):
        found = [int(raw[88:94]) for raw in read_all(again, "T", queue_id)]
        expected = range(queue_id, COUNT + 50, 2)
        assert found == list(expected)
    again.close()
    with StoreFolder(small.root) as folder:
        assert verify_store(folder).findings.worst is Level.NOTE


def test_exchanged_folders_of_queues_are_found_and_made_anew(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    put(store, range(COUNT))
    killed_after_sync(store)
    swap(queue_file(small.root, 0, 0).parent, queue_file(small.root, 1, 0).parent)
    again = open_store(small)
    for queue_id in (0, 1):
        assert [int(raw[88:94]) for raw in read_all(again, "T", queue_id)] == list(range(queue_id, COUNT, 2))


def killed_after_sync(store: MessageStore, more: int = 0) -> None:
    """All is on disk and counted; what is put afterwards is in the log only."""
    store.flush()
    store.queue_flusher.sync(store.parts.log.store_timestamp, store.parts.log.position)
    put(store, range(COUNT, COUNT + more))
    store.log_flusher.finish()
    store.abandon()


@pytest.mark.parametrize("more", [0, 1, 2])
@pytest.mark.parametrize("last_of", [0, 1])
@pytest.mark.parametrize("spoil", [without_last, without_one_queue, without_all_queues])
def test_units_that_were_on_disk_before_a_kill_and_are_gone_are_made_anew(
    small: MessageStoreConfig, open_store: OpenStore, spoil: Spoil, last_of: int, more: int
) -> None:
    """A start reads what came behind the last sync, and counts the files of what came before."""
    store = open_store(small)
    put(store, range(COUNT))
    store.put_message(message(b"%06d" % 999_999, topic="Other", queue_id=last_of))
    killed_after_sync(store, more)
    spoil(small.root)
    again = open_store(small)
    assert numbers_of(again) == list(range(COUNT + more))
    assert again.put_message(message(b"next")).queue_offset == COUNT // 2 + (more > 0)


def test_the_queue_with_the_newest_message_is_missed_too(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    put(store, range(COUNT))
    killed_after_sync(store)
    shutil.rmtree(queue_file(small.root, 1, 0).parent)
    assert numbers_of(open_store(small)) == list(range(COUNT))


def test_a_first_file_gone_after_a_kill_is_found_by_a_repair(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """To a start it looks expired."""
    store = open_store(small)
    put(store, range(COUNT))
    killed_after_sync(store)
    without_first(small.root)
    with StoreFolder(small.root) as folder:
        assert verify_store(folder).findings.worst is Level.ERROR
    plan, _kept, result = repair_store(
        small.root, lambda is_ours: StoreFolder(small.root, is_ours=is_ours), RepairOptions()
    )
    assert plan.queues == [("T", 0)]
    assert result.findings.worst <= Level.WARNING  # the abort marker
    assert numbers_of(open_store(small)) == list(range(COUNT))


def missed(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if getattr(record, "event", "") == "units_missing"]


def test_no_file_is_missed_that_expired_or_was_not_synced_or_went_with_its_topic(
    small: MessageStoreConfig, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The log would be read from end to end for nothing."""
    store = open_store(small)
    put(store, range(COUNT))
    for number in range(120):
        store.put_message(message(b"%06d" % number, topic="Other"))
    store.put_message(message(b"gone soon", topic="Gone"))
    store.flush()
    store.delete_topic("Gone")
    synced = store.parts.log.position
    for is_synced in (True, False):  # files more each time, those of the first for messages that are not synced
        for number in range(120):
            store.put_message(message(b"%06d" % number, topic="Other", queue_id=1 - is_synced))
        store.queue_flusher.write_out()
        if is_synced:
            store.queue_flusher.sync(store.parts.log.store_timestamp, synced)
    store.log_flusher.finish()
    for path in queue_file(small.root, 0, 0), queue_file(small.root, 1, 0):
        path.unlink()  # as retention does
    store.abandon()
    shutil.rmtree(small.root / "consumequeue" / "Other" / "1")
    again = open_store(small)
    assert missed(caplog) == []
    assert (again.max_offset("Other", 0), again.max_offset("Other", 1)) == (240, 120)
    again.abandon()
    assert open_store(small).max_offset("T", 0) == COUNT // 2
    assert missed(caplog) == []


def test_nothing_is_missed_after_the_newest_topic_was_deleted(
    small: MessageStoreConfig, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store(small)
    put(store, range(COUNT))
    for _ in range(150):
        store.put_message(message(b"newest", topic="Gone"))
    store.flush()
    store.queue_flusher.sync(store.parts.log.store_timestamp, store.parts.log.position)
    store.delete_topic("Gone")
    assert store.parts.queues.has_lost_queues  # the flusher's next round comes at once
    killed_after_sync(store)
    assert numbers_of(open_store(small)) == list(range(COUNT))
    assert missed(caplog) == []


def test_files_are_counted_as_they_come_and_go(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """The running count is what a look at all queues gives."""
    store = open_store(small)
    table = store.parts.queues
    for step in range(12):
        for number in range(step * 30):
            store.put_message(message(b"x", topic=f"T{number % (step + 1)}", queue_id=step % 3))
        if step % 4 == 3:
            store.delete_topic(f"T{step - 1}")
        store.queue_flusher.finish()
        counted = table.files_below(store.parts.log.position)
        table.count_files()
        assert counted == table.files_below(store.parts.log.position) > 0 or step == 0


@pytest.mark.parametrize("name", ["checkpoint", "abort", "lock"])
def test_a_folder_where_a_file_has_to_be_is_named(
    stopped: MessageStoreConfig, open_store: OpenStore, name: str
) -> None:
    path = stopped.root / name
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(StoreDamaged, match=f"{name}: is a folder.*move it away"):
        open_store(stopped)
    path.rmdir()
    assert numbers_of(open_store(stopped)) == list(range(COUNT))


def test_a_file_far_behind_the_others_is_no_reason_to_fill_all_between(
    stopped: MessageStoreConfig, open_store: OpenStore
) -> None:
    """Somebody put it there: thousands of blank files would be made, and the log go on behind them."""
    root = stopped.root
    for number in (100, 10_000):
        foreign = log_file(root, number)
        shutil.copyfile(log_file(root, 0), foreign)
        before = sorted(path.name for path in (root / "commitlog").iterdir())
        with pytest.raises(RepairRefused, match=rf"{foreign.name} stands {number - 7} files behind .*: move it away"):
            repair_store(root, lambda is_ours: StoreFolder(root, is_ours=is_ours), SKIP_LOST)
        assert sorted(path.name for path in (root / "commitlog").iterdir()) == before
        foreign.unlink()
    assert numbers_of(open_store(stopped)) == list(range(COUNT))


def test_a_look_names_what_does_not_belong_into_a_queues_folder(stopped: MessageStoreConfig) -> None:
    stray = queue_file(stopped.root, 0, 0).with_name("notes.txt")
    stray.touch()
    with StoreFolder(stopped.root) as folder:
        found = [finding for finding in check_store(folder).findings if finding.code == "stray_file"]
    assert [finding.path for finding in found] == [str(stray)]


def test_a_queue_file_missing_in_the_middle_is_made_anew(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    for number in range(350):
        store.put_message(message(b"%06d" % number))
    store.close()
    queue_file(small.root, 0, 1).unlink()
    assert len(read_all(open_store(small), "T")) == 350


def test_what_a_start_made_anew_is_there_after_a_kill(stopped: MessageStoreConfig, open_store: OpenStore) -> None:
    without_one_queue(stopped.root)
    open_store(stopped).abandon()
    assert numbers_of(open_store(stopped)) == list(range(COUNT))


def test_what_a_queue_gets_again_is_not_indexed_again(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """Entries of older messages behind newer ones: the next crash would find the index file damaged."""
    store = open_store(small)
    put(store, range(50))
    store.flush()
    store.queue_flusher.sync(store.parts.log.store_timestamp, store.parts.log.position)
    put(store, range(50, 80))
    store.abandon()
    without_one_queue(small.root)
    again = open_store(small)
    assert numbers_of(again) == list(range(80))
    again.close()
    with StoreFolder(small.root) as folder:
        offsets = [entry.physical_offset for index in folder.indexes() for entry in index.entries()]
        assert offsets == sorted(set(offsets)) and len(offsets) == 80
        assert verify_store(folder).findings.worst is Level.NOTE


def test_a_topic_whose_folder_was_removed_stays_removed(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """Administrators of RocketMQ get rid of topics that way."""
    store = open_store(small)
    put(store, range(10))
    store.put_message(message(b"other", topic="Other"))
    store.close()
    shutil.rmtree(small.root / "consumequeue" / "T")
    again = open_store(small)
    assert again.topics() == {"Other"}
    assert again.put_message(message(b"first")).queue_offset == 0


def test_a_topic_that_began_anew_is_not_mixed_with_its_former_life(
    small: MessageStoreConfig, open_store: OpenStore
) -> None:
    store = open_store(small)
    put(store, range(20))
    store.delete_topic("T")
    put(store, range(20, 320))
    store.close()
    without_last(small.root)
    assert numbers_of(open_store(small)) == list(range(20, 320))


def test_a_queue_far_behind_an_expired_log_keeps_its_indexes(small: MessageStoreConfig, open_store: OpenStore) -> None:
    """Its first file is gone, and of its messages only the last are still in the log."""
    store = open_store(small)
    fill(store)
    store.checkpoint.keep_from(5 * 65536)  # as retention does
    store.close()
    for number in range(5):
        log_file(small.root, number).unlink()
    again = open_store(small)
    first = again.min_offset("T", 0)
    assert first > 100
    again.close()
    without_last(small.root)
    third = open_store(small)
    assert (third.min_offset("T", 0), third.max_offset("T", 0)) == (first, COUNT // 2)
    assert min(number for number in numbers_of(third) if number % 2 == 0) == 2 * first


# -- the commit log ---------------------------------------------------------------------------------------------------


def no_last_file(root: Path) -> None:
    max((root / "commitlog").iterdir()).unlink()


def no_first_file(root: Path) -> None:
    log_file(root, 0).unlink()


def no_first_files(root: Path) -> None:
    log_file(root, 0).unlink()
    log_file(root, 1).unlink()


def no_first_and_middle_file(root: Path) -> None:
    log_file(root, 0).unlink()
    log_file(root, 3).unlink()


def no_file(root: Path) -> None:
    for path in (root / "commitlog").iterdir():
        path.unlink()


def no_middle_file(root: Path) -> None:
    log_file(root, 2).unlink()


def empty_middle_files(root: Path) -> None:
    log_file(root, 1).write_bytes(b"")
    log_file(root, 2).write_bytes(b"")


def empty_first_file(root: Path) -> None:
    log_file(root, 0).write_bytes(b"")


def empty_near_end(root: Path) -> None:
    """A crash may leave files like that, but the log was on disk further than that."""
    log_file(root, 5).write_bytes(b"")


def no_and_empty_file(root: Path) -> None:
    log_file(root, 1).unlink()
    log_file(root, 4).write_bytes(b"")


@pytest.mark.parametrize(
    ("spoil", "lost_files"),
    [
        (no_first_file, [0]),
        (no_first_files, [0, 1]),
        (no_first_and_middle_file, [0, 3]),
        (no_last_file, [6]),
        (no_middle_file, [2]),
        (empty_middle_files, [1, 2]),
        (empty_first_file, [0]),
        (no_and_empty_file, [1, 4]),
        (empty_near_end, [5]),
        (no_file, range(7)),
    ],
)
def test_a_log_without_one_of_its_files_is_refused_until_it_is_told_to_go_on(
    stopped: MessageStoreConfig, open_store: OpenStore, spoil: Spoil, lost_files: Sequence[int]
) -> None:
    root = stopped.root
    places = dict(enumerate(offset for offset, _raw in commit_log_records(root)))
    lost = {number for number, offset in places.items() if offset // 65536 in lost_files}
    spoil(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with pytest.raises(StoreDamaged, match=r"(is empty|missing).*restore what is missing.*--skip-lost|not mounted"):
        open_store(stopped)
    with StoreFolder(root) as folder:
        assert check_store(folder).findings.worst is Level.ERROR
        assert "--skip-lost" in plan_repair(folder, verify_store(folder)).refusal
    with pytest.raises(RepairRefused, match="skip-lost"):
        repair_store(root, lambda is_ours: StoreFolder(root, is_ours=is_ours), RepairOptions())
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before

    plan, _kept, result = repair_store(root, lambda is_ours: StoreFolder(root, is_ours=is_ours), SKIP_LOST)
    assert plan.lost
    assert [str(finding) for finding in result.findings if finding.level > Level.NOTE] == []
    store = open_store(stopped)
    assert numbers_of(store) == sorted(set(range(COUNT)).difference(lost))
    expected = COUNT // 2
    if COUNT - 1 in lost:
        expected -= sum(number % 2 == 0 for number in lost)
    assert store.put_message(message(b"next")).queue_offset == expected
    store.abandon()
    after = open_store(stopped)
    assert after.max_offset("T", 0) == expected + 1


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_first_log_file_lost_after_a_kill_is_refused_and_says_how_much_is_lost(
    small: MessageStoreConfig, open_store: OpenStore, is_synced: bool
) -> None:
    store = open_store(small)
    put(store, range(COUNT))
    store.log_flusher.finish()
    store.queue_flusher.write_out()
    if is_synced:
        store.queue_flusher.sync(store.parts.log.store_timestamp, store.parts.log.position)
    store.abandon()
    lost = sum(offset < 65536 for offset, _raw in commit_log_records(small.root))
    store = open_store(small)  # this start knows the first file
    store.abandon()
    no_first_file(small.root)
    with pytest.raises(StoreDamaged, match=f"from 0 on: files are missing, with {lost} messages .*--skip-lost"):
        open_store(small)
    with StoreFolder(small.root) as folder:
        [finding] = check_store(folder).findings.of("files_missing")
        assert f"from offset 0 to 65536 are missing, with {lost} messages" in finding.text
        assert verify_store(folder).findings.of("files_missing")


def test_the_first_file_of_a_store_that_keeps_no_record_is_no_reason_to_refuse(
    stopped: MessageStoreConfig, open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """RocketMQ's: whether it expired can't be known. It is said once; then there is a record."""
    caplog.set_level("INFO")
    checkpoint = stopped.root / "checkpoint"
    data = bytearray(checkpoint.read_bytes())
    data[24:] = bytes(len(data) - 24)
    checkpoint.write_bytes(data)
    lost = sum(offset < 65536 for offset, _raw in commit_log_records(stopped.root))
    no_first_file(stopped.root)
    with StoreFolder(stopped.root) as folder:
        assert f"{lost} messages" in dict(check_store(folder).facts)["before that"]
    open_store(stopped).close()
    [line] = [each for each in caplog.records if getattr(each, "event", "") == "log_start_unknown"]
    assert vars(line)["messages_before"] == lost
    log_file(stopped.root, 1).unlink()
    with pytest.raises(StoreDamaged, match="from 65536 on"):
        open_store(stopped)


def test_a_log_file_lost_after_a_kill_is_refused_too(small: MessageStoreConfig, open_store: OpenStore) -> None:
    store = open_store(small)
    fill(store)
    store.queue_flusher.sync(store.parts.log.store_timestamp, store.parts.log.position)
    store.abandon()
    last = log_file(small.root, 6)
    kept = last.read_bytes()
    for path in (small.root / "commitlog").iterdir():
        if path >= last:
            path.unlink()
    with pytest.raises(StoreDamaged, match="files are missing"):
        open_store(small)
    last.write_bytes(kept)
    assert numbers_of(open_store(small)) == list(range(COUNT))


def test_files_put_back_are_all_that_a_start_asks_for(stopped: MessageStoreConfig, open_store: OpenStore) -> None:
    (stopped.root / "commitlog").rename(stopped.root.parent / "unmounted")
    with pytest.raises(StoreDamaged, match="not mounted"):
        open_store(stopped)
    (stopped.root.parent / "unmounted").rename(stopped.root / "commitlog")
    assert numbers_of(open_store(stopped)) == list(range(COUNT))


def test_without_log_and_checkpoint_a_store_begins_anew(stopped: MessageStoreConfig, open_store: OpenStore) -> None:
    no_file(stopped.root)
    (stopped.root / "checkpoint").unlink()
    assert open_store(stopped).put_message(message(b"first")).physical_offset == 0


def test_a_damaged_end_of_a_file_is_skipped_and_kept(stopped: MessageStoreConfig, open_store: OpenStore) -> None:
    path = log_file(stopped.root, 2)
    size = int.from_bytes(path.read_bytes()[:4], "big")
    with path.open("r+b") as file:
        file.seek(60 * size)
        file.write(bytes(5 * size))
    damaged = path.read_bytes()
    root = stopped.root
    _plan, kept, result = repair_store(root, lambda is_ours: StoreFolder(root, is_ours=is_ours), SKIP_LOST)
    assert result.findings.worst is Level.NOTE
    assert (kept.path / "commitlog" / f"{path.name}.from-{60 * size}").read_bytes() == damaged[60 * size :]
    assert numbers_of(open_store(stopped)) == [number for number in range(COUNT) if not 190 <= number < 195]


def test_other_lengths_are_told_by_most_files(tmp_path: Path, open_store: OpenStore) -> None:
    config = small_config(tmp_path / "store")
    store = open_store(config)
    fill(store)
    store.close()
    empty_first_file(config.root)
    with StoreFolder(config.root) as folder:
        found = [finding for finding in check_store(folder).findings if finding.code == "file_size"]
    assert [Path(finding.path) for finding in found] == [log_file(config.root, 0)]
