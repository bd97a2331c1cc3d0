"""The store against the simplest store there is: a list of messages for each queue.

Hypothesis puts messages and batches in any order, lets queues be flushed, stops cleanly, kills, tears what was written
last; after each step the store must say what the lists say, and at the end an inspection must find the folder sound.
Files are so small that logs, queues and index roll all the time.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gantrymq.message import record
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.properties import string_hash_code
from store import GetMessageStatus, MessageStore, MessageStoreConfig, PutMessageStatus, StoreBatch, TagFilter
from store.inspect.findings import Level
from store.inspect.folder import StoreFolder
from store.inspect.verify import verify_store
from tests.any_disk import ANY_DISK
from tests.bounded import bounded
from tests.store.conftest import HOST, Clock, message, read_all

LOG_FILE_BYTES = 8192
TOPICS = ("T", "Uü")
KEYS = ("", "k", "k l", "m")
TAGS = ("", "a", "b")

queues = st.tuples(st.sampled_from(TOPICS), st.integers(0, 1))
sizes = st.integers(0, 300) | st.integers(0, 3000)
contents = st.tuples(sizes, st.sampled_from(TAGS), st.sampled_from(KEYS))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Thousands of deaths are logged, and pytest would keep every line."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Stored(NamedTuple):
    queue: tuple[str, int]
    body: bytes
    tags: str
    keys: str
    physical_offset: int


class StoreAndLists(RuleBasedStateMachine):
    """`log` is the model: all messages in the order of the log. Everything else follows from it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-model-"))
        self.config = MessageStoreConfig(
            root=self.folder / "store",
            commit_log_file_bytes=LOG_FILE_BYTES,
            consume_queue_file_bytes=200,
            index_slots=7,
            index_entries=30,
            **ANY_DISK,
        )
        self.clock = Clock(1_700_000_000.0)
        self.log: list[Stored] = []
        self.safe = 0  # so many of them were there at the last start
        self.count = 0
        self.store: Any = None

    @initialize()
    def open(self) -> None:
        store = MessageStore(self.config, clock=self.clock)
        store.load()
        store.start()
        self.store = store
        self.safe = len(self.log)

    @rule(queue=queues, content=contents)
    def put(self, queue: tuple[str, int], content: tuple[int, str, str]) -> None:
        size, tags, keys = content
        body = self._body(size)
        expected = len(self._of(queue))
        result = self.store.put_message(message(body, topic=queue[0], queue_id=queue[1], tags=tags, keys=keys))
        assert (result.status, result.queue_offset) == (PutMessageStatus.PUT_OK, expected)
        self.log.append(Stored(queue, body, tags, keys, result.physical_offset))

    @rule(queue=queues, parts=st.lists(contents, min_size=1, max_size=5))
    def put_batch(self, queue: tuple[str, int], parts: list[tuple[int, str, str]]) -> None:
        bodies = [self._body(size) for size, _tags, _keys in parts]
        expected = len(self._of(queue))
        batch = encode_batch(
            [Message("", body, tags=tags, keys=keys) for body, (_, tags, keys) in zip(bodies, parts, strict=True)]
        )
        result = self.store.put_batch(StoreBatch(*queue, batch, b"", 0, 0, 1, HOST, HOST))
        if result.status is PutMessageStatus.MESSAGE_ILLEGAL:
            assert len(batch) + 100 * len(parts) > LOG_FILE_BYTES  # more than a file can hold
            return
        assert (result.status, result.queue_offset) == (PutMessageStatus.PUT_OK, expected)
        for body, (_, tags, keys), offset in zip(bodies, parts, result.offsets, strict=True):
            self.log.append(Stored(queue, body, tags, keys, offset))

    @rule()
    def refuse_what_is_larger_than_a_file(self) -> None:
        assert self.store.put_message(message(bytes(LOG_FILE_BYTES))).status is PutMessageStatus.MESSAGE_ILLEGAL

    @rule()
    def flush(self) -> None:
        """The background's work: after it, units are in files, and the checkpoint has moved on."""
        self.store.flush()

    @rule(seconds=st.integers(0, 10))
    def wait(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(queue=queues, start=st.integers(-1, 40), count=st.integers(1, 8), tag=st.sampled_from(TAGS))
    def get(self, queue: tuple[str, int], start: int, count: int, tag: str) -> None:
        stored = self._of(queue)
        wanted = TagFilter(frozenset({string_hash_code(tag)})) if tag else None
        result = self.store.get_message("g", *queue, start, count, wanted)
        found = [each.body for each in record.decode_records(b"".join(result.buffers))]
        assert len(found) == result.message_count
        if not 0 <= start < len(stored):
            assert not found
            return
        assert start < result.next_begin_offset <= len(stored)
        matching = [each.body for each in stored[start : result.next_begin_offset] if not tag or each.tags == tag]
        assert found == matching[:count]
        assert found or result.status is not GetMessageStatus.FOUND

    @rule(topic=st.sampled_from(TOPICS), key=st.sampled_from(["k", "l", "m", "x"]))
    def query(self, topic: str, key: str) -> None:
        result = self.store.query_message(topic, key, 64, 0, 1 << 62)
        found = [record.decode_record(raw).body for raw in result.buffers]
        with_key = [each.body for each in self.log if each.queue[0] == topic and key in each.keys.split()]
        assert sorted(found) == sorted(with_key[-64:])

    @rule()
    def stop_and_start(self) -> None:
        self.store.close()
        self.store = None
        self.open()

    @rule()
    def die_and_start(self) -> None:
        self._die()
        self.open()

    @precondition(lambda self: len(self.log) > self.safe)
    @rule(back=st.integers(1, 4), how=st.sampled_from(["torn", "zeroed", "flipped"]), where=st.integers(0, 95))
    def die_with_damage_and_start(self, back: int, how: str, where: int) -> None:
        """One of the last messages is not what was written, so it and all behind it are gone."""
        self._die()
        first = max(len(self.log) - back, self.safe)
        offset = self.log[first].physical_offset
        base = offset - offset % LOG_FILE_BYTES
        path = self.config.root / "commitlog" / f"{base:020d}"
        raw = bytearray(path.read_bytes())
        size = int.from_bytes(raw[offset - base : offset - base + 4], "big")
        start, end = offset - base, offset - base + size
        if how == "torn":
            raw[start + where % size : end] = b"\x55" * (size - where % size)
        elif how == "zeroed":
            raw[start:end] = bytes(size)
        else:
            raw[start + 4 + where % 4] ^= 0x10
        path.write_bytes(raw)
        del self.log[first:]
        self.open()

    @invariant()
    def ends_agree(self) -> None:
        if self.store is not None:
            for topic in TOPICS:
                for queue_id in (0, 1):
                    assert self.store.max_offset(topic, queue_id) == len(self._of((topic, queue_id)))

    def teardown(self) -> None:
        try:
            if self.store is not None:
                self._read_everything()
                self.store.close()
                self._inspect()
        finally:
            shutil.rmtree(self.folder)

    def _read_everything(self) -> None:
        for topic in TOPICS:
            for queue_id in (0, 1):
                expected = [each.body for each in self._of((topic, queue_id))]
                assert [record.decode_record(raw).body for raw in read_all(self.store, topic, queue_id)] == expected
        for each in self.log:
            found = self.store.look_message_by_offset(each.physical_offset)
            assert found is not None
            assert found.body == each.body

    def _inspect(self) -> None:
        with StoreFolder(self.config.root) as folder:
            result = verify_store(folder)
        assert [str(finding) for finding in result.findings if finding.level > Level.NOTE] == []
        assert result.records == len(self.log)

    def _die(self) -> None:
        store, self.store = self.store, None
        store.abandon()

    def _of(self, queue: tuple[str, int]) -> list[Stored]:
        return [each for each in self.log if each.queue == queue]

    def _body(self, size: int) -> bytes:
        self.count += 1
        return b"%d:" % self.count + b"x" * size


StoreAndLists.TestCase.settings = bounded(60, steps=40, shrink=False)
TestStoreAndLists = StoreAndLists.TestCase
