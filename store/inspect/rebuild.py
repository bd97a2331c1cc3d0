"""Rebuilding queues and index from the log.

Units of expired messages are kept from the old queue where they are readable, so that indexes stay what they were; so
are due times that are possible, since they depend on a setting. An extension's address becomes the plain tags code.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from gantrymq.message import properties as names
from gantrymq.message.record import RecordFields
from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from store.base import file_bytes
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.config import MessageStoreConfig
from store.base.cut_folder import CutFolder
from store.base.timer import due_ms_of
from store.index.service import PENDING_MAX, IndexService
from store.inspect.folder import StoreFolder
from store.inspect.index_check import is_rolled_back
from store.inspect.log_reader import LogRecord
from store.inspect.queue_reader import QueueReader
from store.inspect.verify import DELAY_LEVELS
from store.log.scan import has_queue_unit
from store.queues.consume_queue import FILLER, UNIT, ConsumeQueue
from store.queues.consume_queue_table import sync_paths
from store.queues.topic_slot import TopicSlot
from store.startup.dispatch import GAP_UNITS_MAX

MADE_ANEW = "rebuilt from the log"


@dataclass
class _NewQueue:
    """Units from index `first` on."""

    old: QueueReader | None
    first: int = -1
    units: bytearray = field(default_factory=bytearray)
    times: dict[int, int] = field(default_factory=dict)  # file number to store time of its last message, ms

    @property
    def next_index(self) -> int:
        return self.first + len(self.units) // UNIT_BYTES


def rebuild_queues(folder: StoreFolder, keys: list[tuple[str, int]], kept: CutFolder) -> None:
    """Rebuild these queues in one pass over the log. Takes 20 bytes of memory a message."""
    file_units = _file_units(folder)
    queues = {(topic.encode(), queue_id): _NewQueue(folder.queues.get((topic, queue_id))) for topic, queue_id in keys}
    for found in folder.log.read(check_crc=False):
        if isinstance(found, LogRecord) and has_queue_unit(found.fields.sys_flag):
            queue = queues.get((found.fields.topic, found.fields.queue_id))
            if queue is not None:
                _append(queue, found, file_units)
    for topic, queue_id in keys:
        queue = queues[topic.encode(), queue_id]
        _put_expired_before(queue, folder.log.min_offset)
        path = folder.root / "consumequeue" / topic / str(queue_id)
        if path.exists():
            kept.keep_whole(path, 0, MADE_ANEW)
        if queue.units:
            _write(folder, ConsumeQueue(path, topic, queue_id, file_units * UNIT_BYTES, folder.reader), queue)


def rebuild_index(folder: StoreFolder, kept: CutFolder) -> None:
    """Rebuild all index files, with as many slots and entries as before."""
    for file in folder.index_files:
        kept.keep_whole(file.path, 0, MADE_ANEW)
    shape = folder.index_shape
    assert shape is not None
    config = MessageStoreConfig(root=folder.root, index_slots=shape.slots, index_entries=shape.entries)
    index = IndexService(folder.root / "index", config, time.time)
    slots: dict[bytes, TopicSlot] = {}
    try:
        for found in folder.log.read(check_crc=False):
            if not isinstance(found, LogRecord) or is_rolled_back(found.fields):
                continue
            fields = found.fields
            slot = slots.get(fields.topic)
            if slot is None:
                slot = slots[fields.topic] = TopicSlot(fields.topic.decode("utf-8", "replace"))
            index.pending.append((slot.prefix_hash, fields.properties, found.physical_offset, fields.store_timestamp))
            if len(index.pending) >= PENDING_MAX:
                index.put_pending()
        index.put_pending()
        index.sync()
    finally:
        index.close()
    file_bytes.sync_folder(folder.root / "index")


def tags_code(fields: RecordFields) -> int:
    """Return the third field of the message's unit; due times by RocketMQ's default delay levels."""
    if fields.topic == SCHEDULE_TOPIC.encode():
        level = DELAY_LEVELS.level_of(fields.properties)
        if level > 0:
            return fields.store_timestamp + DELAY_LEVELS.delay_ms(level)
    if fields.topic == TIMER_TOPIC.encode() and (due_ms := due_ms_of(fields.properties)):
        return due_ms
    tag = names.find_property(fields.properties, b"TAGS") or b""
    return names.string_hash_code(tag.decode("utf-8", "replace"))


def _append(queue: _NewQueue, found: LogRecord, file_units: int) -> None:
    fields = found.fields
    index = fields.queue_offset
    if queue.first < 0 or index < queue.first or index > queue.next_index + GAP_UNITS_MAX:
        queue.first, queue.units = index, bytearray()
    elif index < queue.next_index:  # the queue was deleted and started again
        del queue.units[(index - queue.first) * UNIT_BYTES :]
    else:
        queue.units += FILLER * (index - queue.next_index)
    old = queue.old.unit_at(index) if queue.old is not None else None
    if old is not None and old.physical_offset == found.physical_offset and old.size_bytes == fields.size_bytes:
        code = _old_code(old.tags_code, fields)
    else:
        code = tags_code(fields)
    queue.units += UNIT.pack(found.physical_offset, fields.size_bytes, code)
    queue.times[index // file_units] = fields.store_timestamp


def _old_code(code: int, fields: RecordFields) -> int:
    """Keep a due time that an unknown level setting may have made; an extension's address becomes the plain code."""
    is_due_time = fields.topic == SCHEDULE_TOPIC.encode() and code >= fields.store_timestamp
    return code if is_due_time else tags_code(fields)


def _put_expired_before(queue: _NewQueue, log_min: int) -> None:
    """Put the old units of messages that have expired before the new ones."""
    if queue.old is None or not queue.old.files:
        return
    old_first = queue.old.first_index
    end = queue.first if queue.first >= 0 else 1 << 62
    expired = bytearray()
    last_offset = -1
    for unit in queue.old.units():
        if unit.queue_offset >= end or not (unit.is_filler or last_offset < unit.physical_offset < log_min):
            break
        last_offset = last_offset if unit.is_filler else unit.physical_offset
        expired += UNIT.pack(unit.physical_offset, unit.size_bytes, unit.tags_code)
    if queue.first < 0 and last_offset >= 0:
        queue.first, queue.units = old_first, expired
    elif queue.first > old_first:
        missing = queue.first - old_first - len(expired) // UNIT_BYTES
        queue.first, queue.units = old_first, expired + FILLER * missing + queue.units


def _write(folder: StoreFolder, target: ConsumeQueue, queue: _NewQueue) -> None:
    start = queue.first - queue.first % target.file_units
    paths = target.write_out(start, queue.first - start, bytes(queue.units))
    sync_paths(set(paths))
    file_bytes.sync_folder(target.folder)
    for path in paths:  # search by time looks at it
        stored_ms = queue.times.get(int(path.name) // UNIT_BYTES // target.file_units)
        if stored_ms is not None:
            os.utime(path, ns=(stored_ms * 1_000_000, stored_ms * 1_000_000))


def _file_units(folder: StoreFolder) -> int:
    """Units of a queue file, as the folder's other queues have them."""
    for queue in folder.queues.values():
        if queue.file_units:
            return queue.file_units
    return MessageStoreConfig.consume_queue_file_bytes // UNIT_BYTES
