"""kill -9 at random moments: every acknowledged message is there, once, in its place."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq.message import record
from store import MessageStore, StoreLocked
from tests.store.conftest import small_config
from tests.store.golden import queue_units

PROJECT = Path(__file__).parents[3]
ROUNDS = 6


def write_until_killed(folder: Path, seed: int, mode: str, count: int) -> list[tuple[str, int, int, int, str]]:
    """Run the writer, kill it without warning once it acknowledged `count`; return all that it had acknowledged."""
    command = [sys.executable, "-m", "tests.store.writer", str(folder), str(seed), mode]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(count)]
    process.kill()
    rest, _ = process.communicate()
    lines = (b"".join(first) + rest).decode().splitlines()
    return [(topic, int(q), int(index), int(at), key) for topic, q, index, at, key in map(str.split, lines)]


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_no_acknowledged_message_is_lost(tmp_path: Path, mode: str) -> None:
    config = small_config(tmp_path, commit_log_file_bytes=1 << 18, index_entries=4000)
    chance = random.Random(7)
    acknowledged: list[tuple[str, int, int, int, str]] = []
    for seed in range(1, ROUNDS + 1):
        latest = write_until_killed(tmp_path, seed, mode, chance.randrange(1, 400))
        acknowledged += latest

        store = MessageStore(config)
        store.load()
        store.start()
        for topic, queue_id, index, physical_offset, key in acknowledged if seed == ROUNDS else latest:
            (unit,) = store.consume_queue_units(topic, queue_id, index, 1)
            assert unit.physical_offset == physical_offset
            stored = store.look_message_by_offset(physical_offset)
            assert stored is not None and stored.keys == [key] and stored.queue_offset == index
        check_queues(store)
        for topic, _queue, _index, _at, key in chance.sample(acknowledged, min(50, len(acknowledged))):
            found = [record.decode_record(raw) for raw in store.query_message(topic, key, 64, 0, 1 << 62).buffers]
            assert len(found) == 64 or any(key in each.keys for each in found)
        store.close()
    assert len(acknowledged) > 200, "the dice of the test are to say when it dies, not the machine"


def check_queues(store: MessageStore) -> None:
    """Each queue counts on without a gap, in the order of the log, each message once."""
    for topic in store.topics():
        for queue_id in store.queue_ids(topic):
            offset, last = store.min_offset(topic, queue_id), -1
            while offset < store.max_offset(topic, queue_id):
                result = store.get_message("g", topic, queue_id, offset, 32)
                assert result.message_count
                for stored in record.decode_records(b"".join(result.buffers)):
                    assert (stored.queue_offset, stored.topic) == (offset, topic)
                    assert stored.physical_offset > last
                    last = stored.physical_offset
                    offset += 1


def test_the_queue_files_agree_after_a_clean_stop(tmp_path: Path) -> None:
    config = small_config(tmp_path, commit_log_file_bytes=1 << 18, index_entries=4000)
    acknowledged = write_until_killed(tmp_path, 1, "async", 400)
    store = MessageStore(config)
    store.load()
    store.start()
    store.close()
    for topic, queue_id, index, physical_offset, _key in acknowledged:
        assert queue_units(tmp_path, topic, queue_id)[index][0] == physical_offset


def test_another_process_is_kept_out(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.store.writer", str(tmp_path), "1", "async"]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(StoreLocked):
            MessageStore(small_config(tmp_path)).load()
    finally:
        process.kill()
        process.communicate()
