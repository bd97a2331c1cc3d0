"""What a start does with the files of the last run: find the valid end of the log, erase what lies behind, make the
queues and the index agree with it.

After a clean stop everything was synced, so it is enough to look at the log from the last message of any queue on.
After a crash the log is read, with CRCs, from where the checkpoint says that everything was on disk (or, where RocketMQ
wrote it, from the newest file that is surely complete), and every record is dispatched again; queues skip what they
have. Either way a record counts only if it says its own position. Stale bytes behind the end are erased and synced
before anything new is written, in the log and in the queues: RocketMQ only moves its pointers, and such bytes have come
back to life there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from gantrymq.errors import RecordError
from gantrymq.message import record, sysflag
from store.base import file_bytes
from store.base.errors import StoreDamaged
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.log.mapped_file_queue import HOW
from store.log.scan import OnRecord, Progress, ScannedRecord, scan_file
from store.queues.consume_queue import FILLER_SIZE, ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable, sync_paths, write_jobs
from store.startup.checkpoint import NOT_SYNCED, Checkpoint
from store.startup.log_cut import end_log, ends_with_blank, records_of

logger = logging.getLogger(__name__)

SYNCED_ONE_BY_ONE = 64  # with more queues to sync, one call for the whole file system is shorter
FILES_TRUSTED_AFTER = 3  # RocketMQ looks at the last three files of each kind


def recover(
    log: CommitLog,
    queues: ConsumeQueueTable,
    index: IndexService,
    checkpoint: Checkpoint,
    dispatch: OnRecord,
    refill: OnRecord,
    bound_memory: Callable[[], None],
    *,
    root: Path,
    clean: bool,
    check_crc: bool,
) -> int:
    """Make log, queues and index agree; return the offset up to which queues have been fed."""
    _refuse_without_files(log, queues, checkpoint)
    log.queue.give_lengths()
    if index.enabled and log.queue.files:
        index.expect(checkpoint.synced.index_end)
    synced = _synced_offset(log, queues, index, checkpoint)
    known = checkpoint.synced
    is_short = known.queue_files >= 0 and _queue_end(queues) < known.queue_end
    torn = {}
    for queue in queues:  # units below what was synced need no proof
        if queue.is_torn or (queue.max_physical_offset > synced and _cut_to_provable_end(queue, log)):
            torn[queue] = queue.next_index
    if clean:
        index.check()
        start = _clean_start(log, queues, check_crc)
        end = find_end(log, start, check_crc=check_crc)
        dispatched = min(end, _queue_end(queues))
        if -1 < checkpoint.synced.units != sum(queue.unit_count for queue in queues):
            torn |= _lost_units(log, queues, end)
    else:
        start = synced or _crash_start(log, checkpoint, is_first=not any(queue.next_index for queue in queues))
        if not synced and checkpoint.synced != NOT_SYNCED:
            checkpoint.synced = (
                NOT_SYNCED  # what is made anew below is not on disk yet: a power cut must not find a seal
            )
            checkpoint.save()
        index.recover(start)
        read_again = {
            queue: (queue.next_index, queue.has_residue) for queue in queues if queue.max_physical_offset > start
        }
        for queue in queues:
            queue.rewind(start)
        kept = {queue: queue.next_index for queue in queues}
        lacking = {queue for queue in torn if queue.max_physical_offset < start}
        made = sum(queue.files_made(index) for queue, index in kept.items() if queue.bases)
        if is_short or (synced and made < known.queue_files):
            lost = _lost_units(log, queues, start)
            kept |= lost
            lacking |= lost.keys()
        progress = Progress(str(log.queue.folder), _filled_end(log) - start, bound_memory)
        end = find_end(log, start, check_crc=check_crc, on_record=dispatch, progress=progress)
        dispatched = end
        torn = {
            queue: kept.get(queue, 0) for queue in queues if queue in lacking or _was_passed(queue, kept.get(queue, 0))
        }
    if not clean:
        _sync_from(start, log)
    if end < checkpoint.synced.log_end:  # what comes there next is something else
        logger.error(
            "commit log ends before what was on disk",
            extra={"event": "commit_log_short", "physical_offset": end, "was": checkpoint.synced.log_end},
        )
        checkpoint.synced = NOT_SYNCED
        checkpoint.save()  # first: the next start must not miss what this one takes away
    end_log(log, end, root)
    for queue in queues:
        if queue.max_physical_offset > end:
            queue.cut_physical(end)
    _refill(torn, log, queues, refill)
    if not clean:
        for queue, (end_index, had_residue) in read_again.items():
            queue.keep_what_is_same(end_index, had_residue)
        _sync_queues([queue for queue in queues if queue.erase_behind_end() or queue in read_again])
    for queue in queues:
        queue.correct_min(max(log.min_offset, 0))
    return max(dispatched, max(log.min_offset, 0))


def _refuse_without_files(log: CommitLog, queues: ConsumeQueueTable, checkpoint: Checkpoint) -> None:
    """StoreDamaged when the log's last files are not there: cutting queues to what remains would make that final.

    RocketMQ goes on, and gives the lost messages' offsets to others.
    """
    files, known = log.queue.files, checkpoint.synced.log_end
    for path in log.queue.empty:
        if int(path.name) < known:
            raise StoreDamaged(str(path), f"is empty, and the log was on disk up to {known}; {HOW}")
    end = files[-1].end if files else 0
    if known > end:
        raise StoreDamaged(
            str(files[-1].path if files else log.queue.folder),
            f"the commit log ends at offset {end}, and was on disk up to {known}: files are missing; is a disk not "
            f"mounted? {HOW[0].upper()}{HOW[1:]}",
        )
    if not files and checkpoint.physic_ms > 0 and any(queue.next_index for queue in queues):
        raise StoreDamaged(
            str(log.queue.folder),
            "there is no commit log file, but there are consume queues; is a disk not mounted? To begin anew, remove "
            f"{queues.folder} as well",
        )


def _lost_units(log: CommitLog, queues: ConsumeQueueTable, below: int) -> dict[ConsumeQueue, int]:
    """Files of queues are missing since they were counted: read the log to see what they should have below an offset.

    Return the index from which each such queue has to be made anew. A topic without any queue was removed by somebody.
    """
    logger.error(
        "consume queues lack units that they had: looking for them in the log", extra={"event": "units_missing"}
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


def _sync_from(start: int, log: CommitLog) -> None:
    """Have the disk take what the last run wrote and perhaps did not sync: with `end_log` it counts as flushed."""
    for file in log.queue.files:
        if file.end > start:
            file.sync()


def _sync_queues(queues: list[ConsumeQueue]) -> None:
    """Have the disk take what was erased, before anything is written there, and what the last run did not sync."""
    if len(queues) > SYNCED_ONE_BY_ONE:
        file_bytes.sync_file_system(queues[0].folder)
        return
    sync_paths({queue.path_of(base) for queue in queues for base in queue.bases[-1:]})
    for queue in queues:
        file_bytes.sync_folder(queue.folder)


def _was_passed(queue: ConsumeQueue, index: int) -> bool:
    """Say if a crash's dispatch began behind messages whose units, from `index` on, are lost."""
    unit = queue.unit_at(index)
    return queue.next_index > index and (unit is None or unit.size_bytes == FILLER_SIZE)


def _refill(torn: dict[ConsumeQueue, int], log: CommitLog, queues: ConsumeQueueTable, refill: OnRecord) -> None:
    """Give each queue again what the log has for it from the index on at which units were lost.

    Other queues get nothing: what the log has for them may be messages of deleted topics.
    """
    if not torn:
        return
    for queue, index in torn.items():
        queue.cut(index)
        if queue.max_physical_offset <= log.min_offset:
            queue.cut(0)  # no message is left of what it has: it begins where the log does, however far that is
    wanted = {(queue.topic.encode(), queue.queue_id) for queue in torn}

    def dispatch_wanted(fields: ScannedRecord, position: int) -> None:
        if (fields.topic, fields.queue_id) in wanted:
            refill(fields, position)

    start = max(min(queue.max_physical_offset for queue in torn), log.min_offset)
    find_end(log, start, check_crc=False, on_record=dispatch_wanted)
    jobs = queues.take_jobs()  # the next start, perhaps after a crash, must find what this one put right
    sync_paths(set(write_jobs(jobs)))
    queues.jobs_done(jobs)
    for queue in torn:
        if queue.bases:
            file_bytes.sync_folder(queue.folder)
            file_bytes.sync_folder(queue.folder.parent)


def find_end(
    log: CommitLog, start: int, *, check_crc: bool, on_record: OnRecord | None = None, progress: Progress | None = None
) -> int:
    """Read records from `start` on; return where the valid ones end."""
    end = start
    file = log.queue.find(start)
    while file is not None:
        end = file.base + scan_file(file, end - file.base, check_crc=check_crc, on_record=on_record, progress=progress)
        following = log.queue.find(file.end)
        if not ends_with_blank(file, end) or following is None:
            break
        end = file.end
        file = following
    return end


def _clean_start(log: CommitLog, queues: ConsumeQueueTable, check_crc: bool) -> int:
    """After a clean stop: the last message of any queue, if it is there; else the third file from the end."""
    files = log.queue.files
    if not files:
        return 0
    newest = max(queues, key=lambda queue: queue.max_physical_offset, default=None)
    unit = newest.unit_at(newest.next_index - 1) if newest is not None else None
    if unit is not None:
        file = log.queue.find(unit.physical_offset)
        if file is not None:
            for _position, _fields in records_of(file, unit.physical_offset - file.base, check_crc=check_crc):
                return unit.physical_offset
    return files[max(0, len(files) - FILES_TRUSTED_AFTER)].base


def _synced_offset(log: CommitLog, queues: ConsumeQueueTable, index: IndexService, checkpoint: Checkpoint) -> int:
    """Return the offset below which log, queues and index are complete; 0 when that is not known or not believed.

    Folders get mixed, and files deleted by hand to have them made anew: queues and index must reach as far as they did.
    """
    synced = checkpoint.synced
    if synced.end_offset <= max(log.min_offset, 0) or log.queue.find(synced.end_offset - 1) is None:
        return 0
    if _queue_end(queues) < synced.queue_end:
        return 0
    return synced.end_offset if index.last_update[1] >= synced.index_end else 0


def _queue_end(queues: ConsumeQueueTable) -> int:
    """Return where the last message ends that any queue has."""
    return max((queue.max_physical_offset for queue in queues), default=0)


def _filled_end(log: CommitLog) -> int:
    """Guess where the log ends, from the disk blocks of its last files."""
    for file in reversed(log.queue.files):
        used_bytes = file.path.stat().st_blocks * 512
        if used_bytes:
            return min(file.base + used_bytes, file.end)
    return 0


def _crash_start(log: CommitLog, checkpoint: Checkpoint, *, is_first: bool) -> int:
    """After a crash: the newest file whose first message was surely flushed, in log and queues; else the oldest.

    With `is_first` the oldest anyhow: no queue has anything.
    """
    bound_ms = checkpoint.recovery_bound_ms()
    files = log.queue.files
    for file in reversed(files if not is_first else []):
        for position, fields in records_of(file, 0, check_crc=False):
            if 0 < fields.store_timestamp <= bound_ms:
                return position
            break
    return files[0].base if files else 0


def _cut_to_provable_end(queue: ConsumeQueue, log: CommitLog) -> bool:
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


def _unit_is_proved(queue: ConsumeQueue, index: int, log: CommitLog) -> bool:
    unit = queue.unit_at(index)
    if unit is None:
        return False
    if unit.size_bytes == FILLER_SIZE:
        return True
    file = log.queue.find(unit.physical_offset)
    if file is None:
        return unit.physical_offset < log.min_offset  # the message expired; the unit may follow
    try:
        fields = record.split_record(file.view, unit.physical_offset - file.base)
    except RecordError:
        return False
    return (
        fields.physical_offset == unit.physical_offset
        and fields.size_bytes == unit.size_bytes
        and fields.queue_offset == index
        and fields.queue_id == queue.queue_id
        and fields.topic == queue.topic.encode()
    )


def has_queue_unit(sys_flag: int) -> bool:
    """Messages of an undecided or undone transaction have no place in a queue."""
    return sysflag.transaction_type(sys_flag) in (sysflag.TRANSACTION_NONE, sysflag.TRANSACTION_COMMIT)
