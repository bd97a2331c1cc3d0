"""Many queues within small limits, starts that read only what may be missing, scans that are quick and exact."""

from __future__ import annotations

import asyncio
import random
import resource
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from store import MessageStore, MessageStoreConfig
from store.log import scan as log_scan
from store.log.mapped_file import MappedFile
from store.log.scan import scan_file
from store.queues.scan import scan_queue_file
from store.startup import log_cut
from store.startup.dispatch import Dispatcher
from store.upkeep import flush
from tests.store.conftest import OpenStore, message, read_all, small_config
from tests.waiting import WITHIN_S, aside

TOPICS = 250
QUEUES = 8
SPARE_DESCRIPTORS = 160  # the store keeps at most 128 open for reading


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    highest = max(int(each.name) for each in Path("/proc/self/fd").iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + SPARE_DESCRIPTORS, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def dispatched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Physical offsets of the records that recovery dispatched."""
    offsets: list[int] = []
    real = Dispatcher.redispatch

    def noting(dispatcher: Dispatcher, fields: log_scan.ScannedRecord, physical_offset: int, **how: bool) -> None:
        offsets.append(physical_offset)
        real(dispatcher, fields, physical_offset, **how)

    monkeypatch.setattr(Dispatcher, "redispatch", noting)
    return offsets


def put(store: MessageStore, count: int, *, start: int = 0) -> list[int]:
    return [
        store.put_message(message(b"%06d" % number, queue_id=number % 3, keys=f"k{number}")).physical_offset
        for number in range(start, start + count)
    ]


def run_until_synced(store: MessageStore) -> None:
    """Run the store as a broker does until the checkpoint covers what it has."""

    async def work() -> None:
        async with aside(store.run()), asyncio.timeout(WITHIN_S):
            while store.checkpoint.synced.end_offset < store.max_physical_offset:
                await asyncio.sleep(0.01)

    asyncio.run(work())


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MessageStoreConfig:
    """A store that syncs everything every few milliseconds."""
    monkeypatch.setattr(flush, "SYNC_QUEUES_INTERVAL_S", 0.0)
    return small_config(
        tmp_path / "store",
        commit_log_file_bytes=1 << 20,
        consume_queue_flush_interval_ms=5,
        flush_interval_ms=5,
        index_entries=4000,
    )


# -- many queues -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.usefixtures("few_descriptors")
def test_thousands_of_queues_need_few_descriptors_and_no_maps(
    tmp_path: Path, open_store: OpenStore, clean: bool
) -> None:
    config = small_config(tmp_path, commit_log_file_bytes=1 << 20)
    store = open_store(config)
    for turn in range(2):
        for topic in range(TOPICS):
            for queue_id in range(QUEUES):
                result = store.put_message(message(b"%d" % turn, topic=f"topic-{topic}", queue_id=queue_id))
                assert result.queue_offset == turn
        store.queue_flusher.finish()
    for topic in range(TOPICS):
        assert len(read_all(store, f"topic-{topic}", topic % QUEUES)) == 2
    if clean:
        store.close()
    else:
        store.abandon()
    again = open_store(config)
    assert len(again.topics()) == TOPICS
    for topic in range(TOPICS):
        assert again.max_offset(f"topic-{topic}", 3) == 2
        assert len(read_all(again, f"topic-{topic}", 3)) == 2
    assert "consumequeue" not in Path("/proc/self/maps").read_text()


def test_many_queues_are_given_to_the_writer_in_turns(store: MessageStore) -> None:
    for queue_id in range(600):
        store.put_message(message(queue_id=queue_id))
    sizes = []
    while jobs := store.parts.queues.take_jobs(256):
        sizes.append(len(jobs))
        store.parts.queues.jobs_failed(jobs) if len(sizes) == 1 else None
    assert sizes == [256, 256, 256, 88]


# -- starts ----------------------------------------------------------------------------------------------------------


def test_after_a_crash_only_what_was_not_synced_is_read_again(
    quick: MessageStoreConfig, open_store: OpenStore, dispatched: list[int]
) -> None:
    store = open_store(quick)
    put(store, 900)
    run_until_synced(store)
    later = put(store, 70, start=900)
    expected = [read_all(store, "T", queue_id) for queue_id in range(3)]
    store.abandon()
    again = open_store(quick)
    assert dispatched == later
    assert [read_all(again, "T", queue_id) for queue_id in range(3)] == expected
    for number in (0, 450, 899, 900, 969):
        assert again.query_message("T", f"k{number}", 32, 0, 1 << 62).buffers
    assert again.parts.index.files[0].count == 971
    again.abandon()
    dispatched.clear()
    assert open_store(quick).max_offset("T", 0) == len(expected[0])
    assert dispatched == later  # nothing was synced meanwhile


def test_a_clean_stop_counts_as_synced_at_the_next_start(
    quick: MessageStoreConfig, open_store: OpenStore, dispatched: list[int]
) -> None:
    store = open_store(quick)
    put(store, 300)
    store.close()
    again = open_store(quick)
    later = put(again, 5, start=300)
    again.abandon()
    last = open_store(quick)
    assert sum(len(read_all(last, "T", queue_id)) for queue_id in range(3)) == 305
    assert dispatched == later


@pytest.mark.parametrize("doubt", ["rocketmq ran", "damaged", "queues deleted", "one queue shorter", "index deleted"])
def test_a_checkpoint_that_does_not_fit_is_not_believed(
    quick: MessageStoreConfig, open_store: OpenStore, dispatched: list[int], doubt: str
) -> None:
    store = open_store(quick)
    offsets = put(store, 300)
    run_until_synced(store)
    expected = [read_all(store, "T", queue_id) for queue_id in range(3)]
    store.abandon()
    checkpoint = quick.root / "checkpoint"
    match doubt:
        case "rocketmq ran":
            checkpoint.write_bytes(struct.pack(">q", 1_600_000_000_000) + checkpoint.read_bytes()[8:])
        case "damaged":
            data = bytearray(checkpoint.read_bytes())
            data[515] ^= 1
            checkpoint.write_bytes(data)
        case "queues deleted":
            shutil.rmtree(quick.root / "consumequeue")
        case "one queue shorter":
            path = max((quick.root / "consumequeue" / "T" / str(299 % 3)).iterdir())
            data = bytearray(path.read_bytes())
            end = data.rstrip(b"\0").rfind(offsets[-1].to_bytes(8, "big"))
            path.write_bytes(bytes(data[:end]).ljust(len(data), b"\0"))
        case "index deleted":
            shutil.rmtree(quick.root / "index")
    again = open_store(quick)
    assert dispatched == offsets
    assert [read_all(again, "T", queue_id) for queue_id in range(3)] == expected
    assert again.query_message("T", "k0", 32, 0, 1 << 62).buffers


def test_a_log_cut_below_what_was_synced_takes_the_checkpoint_with_it(
    quick: MessageStoreConfig, open_store: OpenStore
) -> None:
    store = open_store(quick)
    offsets = put(store, 300)
    run_until_synced(store)
    store.abandon()
    with (quick.commit_log_folders[0] / f"{0:020d}").open("r+b") as file:
        file.seek(offsets[100] + 90)
        file.write(bytes((1 << 20) - offsets[100] - 90))
    (quick.root / "checkpoint").write_bytes(bytes(4096))
    again = open_store(quick)
    assert again.max_physical_offset == offsets[100]
    put(again, 3, start=1000)
    again.abandon()
    last = open_store(quick)
    assert sum(len(read_all(last, "T", queue_id)) for queue_id in range(3)) == 103


def test_recovery_tells_how_far_it_is(
    quick: MessageStoreConfig, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(log_scan, "REPORT_EVERY_S", 0.0)
    monkeypatch.setattr(log_scan, "STRIDE_BYTES", 8192)
    monkeypatch.setattr(flush, "STEPS_WRITTEN_TOGETHER", 2)  # units are written while more are made
    caplog.set_level("INFO")
    store = open_store(quick)
    put(store, 900)
    expected = [read_all(store, "T", queue_id) for queue_id in range(3)]
    store.abandon()
    again = open_store(quick)
    assert [read_all(again, "T", queue_id) for queue_id in range(3)] == expected
    lines = [each.__dict__ for each in caplog.records if getattr(each, "event", "") == "store_recovering"]
    done = [line["done_bytes"] for line in lines]
    assert len(done) > 10 and done == sorted(done) and done[-1] == again.max_physical_offset
    assert 0 <= lines[0]["percent"] <= lines[-1]["percent"] <= 100


# -- scans -----------------------------------------------------------------------------------------------------------


def log_file(config: MessageStoreConfig) -> MappedFile:
    return MappedFile(config.commit_log_folders[0] / f"{0:020d}", config.commit_log_file_bytes)


@pytest.mark.parametrize("seed", range(4))
def test_the_quick_scan_sees_what_the_record_codec_sees(tmp_path: Path, open_store: OpenStore, seed: int) -> None:
    chance = random.Random(seed)
    config = small_config(tmp_path)
    store = open_store(config)
    v6 = bytes(15) + b"\x01" + bytes(4)
    for number in range(60):
        each = message(chance.randbytes(chance.randrange(300)), topic="é" * chance.randrange(1, 60), keys=f"k{number}")
        if chance.random() < 0.3:
            each.born_host = v6
        if chance.random() < 0.3:
            each.store_host = v6
        store.put_message(each)
    end = store.max_physical_offset
    store.close()
    path = config.commit_log_folders[0] / f"{0:020d}"
    whole = path.read_bytes()
    for damage in range(60):
        data = bytearray(whole)
        if damage:
            data[chance.randrange(end)] = chance.randrange(256)
        path.write_bytes(data)
        file = log_file(config)
        slow = list(log_cut.records_of(file, 0, check_crc=True))
        fast: list[tuple[int, log_scan.ScannedRecord]] = []
        stop = scan_file(file, 0, check_crc=True, on_record=lambda found, at: fast.append((at, found)))  # noqa: B023
        assert stop == (slow[-1][0] + slow[-1][1].size_bytes if slow else 0)
        assert [at for at, _ in fast] == [at for at, _ in slow]
        for (_, found), (_, fields) in zip(fast, slow, strict=True):
            assert found._asdict() == {name: getattr(fields, name) for name in found._fields}
        file.close()


@pytest.mark.parametrize("units", [0, 1, 203, 204, 205, 409, 4096, 9000, 9999, 10_000])
@pytest.mark.parametrize("synced", [0, 150, 1 << 62])
def test_the_end_of_a_queue_file_is_found_by_halving_or_by_looking(tmp_path: Path, units: int, synced: int) -> None:
    path = tmp_path / "file"
    data = b"".join(struct.pack(">qiq", index * 100, 100, 7) for index in range(units))
    write_sparse(path, data, 200_000)
    found = scan_queue_file(str(path), 10_000, min(synced, units) * 100)
    assert found.units == units
    if units:
        assert found.first is not None and found.first.physical_offset == 0
        assert found.last is not None and found.last.physical_offset == (units - 1) * 100
        assert not found.has_residue


def test_a_hole_among_units_that_were_not_synced_ends_the_queue(tmp_path: Path) -> None:
    data = bytearray(b"".join(struct.pack(">qiq", index * 100, 100, 7) for index in range(10_000)))
    data[100_000:104_096] = bytes(4096)
    write_sparse(tmp_path / "file", data, 200_000)
    found = scan_queue_file(str(tmp_path / "file"), 10_000, 4000 * 100)
    assert (found.units, found.has_residue) == (5000, True)


def write_sparse(path: Path, data: Any, size_bytes: int) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size_bytes)
