"""Consume-queue units that a start finds missing: which ones, and how they are rebuilt from the log.

A crash or a power cut takes a queue's last units; a person may have taken whole files. A unit counts only if its record
says the same place, queue and queue offset.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from gantrymq.errors import RecordError
from gantrymq.message import properties as names
from gantrymq.message import record
from store.base import file_bytes
from store.log.commit_log import CommitLog
from store.log.scan import OnRecord, ScannedRecord, has_queue_unit
from store.queues.consume_queue import FILLER_SIZE, ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable, sync_paths, write_jobs
from store.startup.log_cut import find_end

logger = logging.getLogger(__name__)

FOREIGN_LOOK_UNITS = 8  # of a file, from its end: those whose records are damaged tell nothing


def cut_to_provable_end(queue: ConsumeQueue, log: CommitLog) -> bool:
    """Drop units from the queue's end until the last one names a message of this queue and index in the log.

    Return whether there were any to drop.
    """
    index = queue.next_index
    while index > queue.first_index and not _unit_is_proved(queue, index - 1, log):
        index -= 1
    is_cut = index < queue.next_index
    if is_cut:
        logger.warning(
            "consume queue units without their message dropped",
            extra={
                "event": "units_dropped",
                "topic": queue.topic,
                "queue_id": queue.queue_id,
                "count": queue.next_index - index,
            },
        )
        queue.cut(index)
    return is_cut


def cut_to_own_files(queue: ConsumeQueue, log: CommitLog, *, with_last: bool) -> bool:
    """Drop units from the first file on that is another queue's: its last unit names a whole record of that queue.

    Return whether there was one. with_last: look at the queue's last file, too; its end may have been proved already.
    """
    for base in queue.bases if with_last else queue.bases[:-1]:
        end = min(base + queue.file_units, queue.next_index)
        is_own, index = _is_own(queue, end - 1, log), end - 2
        while is_own is None and index >= max(base, end - FOREIGN_LOOK_UNITS):
            is_own, index = _is_own(queue, index, log), index - 1
        if is_own is not False:
            continue
        logger.error(
            "consume queue file of another queue: rebuilt from the log",
            extra={
                "event": "queue_file_foreign",
                "path": str(queue.path_of(base)),
                "topic": queue.topic,
                "queue_id": queue.queue_id,
            },
        )
        queue.cut(base)
        return True
    return False


def _unit_is_proved(queue: ConsumeQueue, index: int, log: CommitLog) -> bool:
    unit = queue.unit_at(index)
    if unit is None:
        return False
    if unit.size_bytes == FILLER_SIZE:
        return True
    if log.queue.find(unit.physical_offset) is None:
        return unit.physical_offset < log.min_offset  # the message expired; the unit may follow
    return _is_own(queue, index, log) is True


def _is_own(queue: ConsumeQueue, index: int, log: CommitLog) -> bool | None:
    """Whether the record that the unit names is the queue's message of that index; None: no record is found there."""
    unit = queue.unit_at(index)
    file = log.queue.find(unit.physical_offset) if unit is not None else None
    if unit is None or file is None:
        return None
    try:
        fields = record.split_record(file.view, unit.physical_offset - file.base)
    except RecordError:
        return None
    if fields.physical_offset != unit.physical_offset or fields.size_bytes != unit.size_bytes:
        return None
    topic = queue.topic.encode()
    if (fields.topic, fields.queue_id, fields.queue_offset) == (topic, queue.queue_id, index):
        return True
    # a message may have been dispatched to other queues, too (RocketMQ: light queues)
    return None if names.INNER_MULTI_DISPATCH.encode() in fields.properties else False


def lost_units(log: CommitLog, queues: ConsumeQueueTable, below: int) -> dict[ConsumeQueue, int]:
    """Files of queues are missing since they were counted: read the log to see what they should have below an offset.

    Return the index from which each such queue has to be rebuilt. A topic without any queue was removed on purpose.
    """
    logger.error(
        "consume queues lack units that they had: searching the log for them", extra={"event": "units_missing"}
    )
    in_log: dict[tuple[bytes, int], tuple[int, int]] = {}  # first and last index of the queue's present life

    def note(fields: ScannedRecord, position: int) -> None:
        if position < below and has_queue_unit(fields.sys_flag):
            key, index = (fields.topic, fields.queue_id), fields.queue_offset
            first, last = in_log.get(key, (index, -1))
            in_log[key] = (first if index > last else index, index)

    find_end(log, log.min_offset, check_crc=False, on_record=note)
    lost = {}
    for (topic, queue_id), (first, last) in in_log.items():
        slot = queues.slots.get(topic.decode("utf-8", "replace"))
        if slot is None or not slot.queues:
            continue
        queue = slot.queues.get(queue_id) or queues.make(slot, queue_id)
        if first < queue.first_index or not queue.next_index:
            lost[queue] = 0
        elif last >= queue.next_index:
            lost[queue] = queue.next_index
    return lost


def was_passed(queue: ConsumeQueue, index: int) -> bool:
    """Return whether a crash's dispatch began behind messages whose units, from `index` on, are lost."""
    unit = queue.unit_at(index)
    return queue.next_index > index and (unit is None or unit.size_bytes == FILLER_SIZE)


def refill(lacking: Mapping[ConsumeQueue, int], log: CommitLog, queues: ConsumeQueueTable, on_record: OnRecord) -> None:
    """Give each queue again what the log has for it from the index on at which units were lost.

    Other queues get nothing: what the log has for them may be messages of deleted topics.
    """
    if not lacking:
        return
    for queue, index in lacking.items():
        queue.cut(index)
        if queue.max_physical_offset <= log.min_offset:
            queue.cut(0)  # no message is left of what it has: it begins where the log does, however far that is
    wanted = {(queue.topic.encode(), queue.queue_id) for queue in lacking}

    def dispatch_wanted(fields: ScannedRecord, position: int) -> None:
        if (fields.topic, fields.queue_id) in wanted:
            on_record(fields, position)

    start = max(min(queue.max_physical_offset for queue in lacking), log.min_offset)
    find_end(log, start, check_crc=False, on_record=dispatch_wanted)
    jobs = queues.take_jobs()  # the next start, perhaps after a crash, must find what this one put right
    sync_paths(set(write_jobs(jobs)))
    queues.jobs_done(jobs)
    for queue in lacking:
        if queue.bases:
            file_bytes.sync_folder(queue.folder)
            file_bytes.sync_folder(queue.folder.parent)
