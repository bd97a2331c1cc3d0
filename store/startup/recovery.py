"""What a start does with the files of the last run: find the valid end of the log, erase what lies behind, make the
queues and the index agree with it.

A start looks first, and puts what it found into a Plan; then it does what the plan says. After a clean stop everything
was synced, so it is enough to look at the log from the last message of any queue on. After a crash the log is read,
with CRCs, from where the checkpoint says that everything was on disk (or, where RocketMQ wrote it, from the newest file
that is surely complete), and every record is dispatched again, in the same pass; queues skip what they have. Either way
a record counts only if it says its own position. Stale bytes behind the end are erased and synced before anything new
is written, in the log and in the queues: RocketMQ only moves its pointers, and such bytes have come back to life there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from store.base import file_bytes
from store.base.errors import StoreDamaged
from store.index.service import IndexService
from store.log.commit_log import CommitLog
from store.log.mapped_file_queue import HOW
from store.log.scan import Progress
from store.queues.consume_queue import ConsumeQueue
from store.queues.consume_queue_table import ConsumeQueueTable, sync_paths
from store.startup.checkpoint import NOT_KNOWN, NOT_SYNCED, Checkpoint
from store.startup.dispatch import Dispatcher
from store.startup.log_cut import end_log, find_end, records_of
from store.startup.lost_units import cut_to_own_files, cut_to_provable_end, lost_units, refill, was_passed

logger = logging.getLogger(__name__)

SYNCED_ONE_BY_ONE = 64  # with more queues to sync, one call for the whole file system is shorter
FILES_TRUSTED_AFTER = 3  # RocketMQ looks at the last three files of each kind


@dataclass(frozen=True)
class StoreFiles:
    """What a start puts in order; all of it is loaded, none of it is served yet."""

    root: Path
    log: CommitLog
    queues: ConsumeQueueTable
    index: IndexService
    checkpoint: Checkpoint


class Before(NamedTuple):
    """What is known before the log is read."""

    synced_end: int  # below this physical offset log, queues and index are complete; 0: that is not known
    is_short: bool  # the queues reach less far than the checkpoint says
    torn: Mapping[ConsumeQueue, int]  # queues whose last units are missing, with the index of the first that is


class HeldUnits(NamedTuple):
    """What the files of a queue hold whose units the log says again: units below an index, and maybe more."""

    end_index: int
    has_residue: bool  # it is not known that all is empty behind them


@dataclass(frozen=True)
class Plan:
    """What the look found, and so what has to be done. Offsets are physical ones."""

    log_end: int  # the valid records end here: what lies behind is erased
    fed_to: int  # queues and index have been fed every record below this
    lacking: Mapping[ConsumeQueue, int]  # queues that lost units, from an index on: the log has what they need
    unsynced_from: int | None = None  # behind this the disk may lack what the last run wrote; None after a clean stop
    fed_again: Mapping[ConsumeQueue, HeldUnits] = field(default_factory=dict)  # by the look, and what their files hold


def recover(
    files: StoreFiles,
    dispatcher: Dispatcher,
    bound_memory: Callable[[], None],
    *,
    clean: bool,
    check_crc: bool,
) -> int:
    """Make log, queues and index agree; return the physical offset up to which queues have been fed. StoreDamaged.

    bound_memory: called now and then while the log is read, to write out what collects in memory.
    """
    log, queues, index, checkpoint = files.log, files.queues, files.index, files.checkpoint
    # Nothing has been changed so far: a start that is refused leaves the folder as it found it.
    _refuse_without_files(log, queues, checkpoint)
    log.queue.give_lengths()
    if index.enabled and log.queue.files:
        index.expect(checkpoint.synced.index_end)
    before = _look_at_queues(files)
    if clean:
        plan = look_after_clean_stop(files, before, check_crc=check_crc)
    else:
        plan = look_after_crash(files, before, dispatcher, bound_memory, check_crc=check_crc)
    apply(plan, files, dispatcher)
    return max(plan.fed_to, max(log.min_offset, 0))


def _look_at_queues(files: StoreFiles) -> Before:
    """Have every queue end with a unit that its record proves; return what is known then."""
    log, queues, index, checkpoint = files.log, files.queues, files.index, files.checkpoint
    # Before any queue is cut: the checkpoint counted them as they are now, unless files went missing.
    synced_end = _synced_offset(log, queues, index, checkpoint)
    known = checkpoint.synced
    is_short = known.queue_files >= 0 and _queue_end(queues) < known.queue_end
    torn = {}
    for queue in queues:  # what was synced is there; whose files they are is seen in any case
        is_behind = queue.max_physical_offset > synced_end
        is_foreign = (not is_behind or len(queue.bases) > 1) and cut_to_own_files(queue, log, with_last=not is_behind)
        if queue.is_torn or (is_behind and cut_to_provable_end(queue, log)) or is_foreign:
            torn[queue] = queue.next_index
    return Before(synced_end, is_short, torn)


def look_after_clean_stop(files: StoreFiles, before: Before, *, check_crc: bool) -> Plan:
    """Find the log's end behind the last message of any queue. Changes no file."""
    log, queues, index, checkpoint = files.log, files.queues, files.index, files.checkpoint
    index.check()
    # The stop synced the log before it took the abort marker away, so all is valid below the last unit of any queue.
    end = find_end(log, _clean_start(log, queues, check_crc), check_crc=check_crc)
    # Messages behind the last unit were never dispatched (RocketMQ may stop like that): `start` feeds them.
    fed_to = min(end, _queue_end(queues))
    # The stop counted the units. With another number some of their files went missing or came back.
    lacking = dict(before.torn)
    if -1 < checkpoint.synced.units != sum(queue.unit_count for queue in queues):
        lacking |= lost_units(log, queues, end)
    return Plan(end, fed_to, lacking)


def look_after_crash(
    files: StoreFiles, before: Before, dispatcher: Dispatcher, bound_memory: Callable[[], None], *, check_crc: bool
) -> Plan:
    """Find the log's end, and feed queues and index on the way: the log may be long, and is read once."""
    log, queues, index, checkpoint = files.log, files.queues, files.index, files.checkpoint
    # All that this start has to find lies at or behind `start`: below it everything was on disk.
    start = before.synced_end or _crash_start(log, checkpoint, is_first=not any(queue.next_index for queue in queues))
    # Without a seal that is believed, units below `start` may be rebuilt, in memory at first: a power cut
    # meanwhile must not leave the old seal to vouch for them.
    if not before.synced_end and checkpoint.synced != NOT_SYNCED:
        _drop_seal(checkpoint)
    # Index and queues forget what the log is about to say again; the queues' files stay as they are.
    index.recover(start)
    fed_again = {
        queue: HeldUnits(queue.next_index, queue.has_residue) for queue in queues if queue.max_physical_offset > start
    }
    for queue in queues:
        queue.rewind(start)
    # Now each queue's units are those of records below `start`, without gap unless the queue is in `lacking`.
    kept = {queue: queue.next_index for queue in queues}
    lacking = {queue for queue in before.torn if queue.max_physical_offset < start}
    if before.is_short or (before.synced_end and _files_made(kept) < checkpoint.synced.queue_files):
        lost = lost_units(log, queues, start)
        kept |= lost
        lacking |= lost.keys()
    progress = Progress(str(log.queue.folder), _filled_end(log) - start, bound_memory)
    end = find_end(
        log,
        start,
        check_crc=check_crc,
        on_record=dispatcher.redispatch,
        on_plain=dispatcher.on_plain(),
        progress=progress,
    )
    # Where the first record for a queue had a later index than the queue's next one, units below `start` are lost too.
    first_lost = {
        queue: kept.get(queue, 0) for queue in queues if queue in lacking or was_passed(queue, kept.get(queue, 0))
    }
    return Plan(end, end, first_lost, start, fed_again)


def apply(plan: Plan, files: StoreFiles, dispatcher: Dispatcher) -> None:
    """Have the files say what the plan says. A crash at any point leaves a folder that the next start can put right."""
    log, queues, index, checkpoint = files.log, files.queues, files.index, files.checkpoint
    # 1. What was read is on disk before anything relies on it: it may have come from the page cache alone.
    if plan.unsynced_from is not None:
        _sync_from(plan.unsynced_from, log)
    # 2. The seal goes before the bytes it vouched for: the next start must not miss what this one takes away.
    if plan.log_end < checkpoint.synced.log_end:
        logger.error(
            "commit log ends before what was on disk",
            extra={"event": "commit_log_short", "physical_offset": plan.log_end, "was": checkpoint.synced.log_end},
        )
        _drop_seal(checkpoint)
    # 3. Behind the end all is zero, on disk: no stale record can follow one that is written there next.
    end_log(log, plan.log_end, files.root)
    # 4. No unit and no key names a record that is gone: what the log gets there next is another message.
    if index.last_update[1] >= plan.log_end:  # of a log that was cut, or damaged, after a clean stop
        index.recover(plan.log_end)
    for queue in queues:
        if queue.max_physical_offset > plan.log_end:
            queue.cut_physical(plan.log_end)
    # 5. Every queue has a unit for each of its records below `fed_to`.
    refill(plan.lacking, log, queues, dispatcher.refill)
    # 6. The queues' files hold their units or zeros, on disk, before new units are written behind them.
    if plan.unsynced_from is not None:
        for queue, held in plan.fed_again.items():
            queue.keep_what_is_same(held.end_index, held.has_residue)
        _sync_queues([queue for queue in queues if queue.erase_behind_end() or queue in plan.fed_again])
    # 7. The first unit that is read is one whose record the log still has.
    for queue in queues:
        queue.correct_min(max(log.min_offset, 0))


def cut_log(files: StoreFiles, dispatcher: Dispatcher, end: int) -> None:
    """End a recovered log at `end`, the end of a record: what lies behind is not in the log that this one copies.

    It is kept beside the store first. A crash at any point is put right by the next start, which cuts again.
    """
    log, queues, index = files.log, files.queues, files.index
    if end >= log.position:
        return
    dispatcher.put_pending()  # what recovery said again: the index is then cut as a whole
    # The order of `apply`: no seal vouches for bytes that go, the log ends on disk, and only then queues and index lose
    # what named them. Interrupted between two of these, the next start finds units without records, and cuts them.
    _drop_seal(files.checkpoint)
    end_log(log, end, files.root, is_other_log=True)
    cut = [queue for queue in queues if queue.max_physical_offset > end]
    for queue in cut:
        queue.cut_physical(end)
    _sync_queues(cut)
    if index.enabled:
        index.recover(end)
    dispatcher.dispatched = min(dispatcher.dispatched, end)


def _drop_seal(checkpoint: Checkpoint) -> None:
    """Vouch for nothing any more: the next start looks at everything."""
    checkpoint.synced = NOT_SYNCED
    checkpoint.save()


def _refuse_without_files(log: CommitLog, queues: ConsumeQueueTable, checkpoint: Checkpoint) -> None:
    """StoreDamaged when the log's first or last files are not there: what is done next would make that final.

    RocketMQ goes on, and gives the lost messages' offsets to others.
    """
    files, known = log.queue.files, checkpoint.synced.log_end
    for path in log.queue.empty:
        if int(path.name) < known:
            raise StoreDamaged(str(path), f"is empty, and the log was on disk up to {known}; {HOW}")
    if files:
        _refuse_without_first(log, queues, checkpoint)
    end = files[-1].end if files else 0
    was_empty = not files and checkpoint.synced.units == 0  # a copy that stopped before its first whole record
    if known > end and not was_empty:
        raise StoreDamaged(
            str(files[-1].path if files else log.queue.folder),
            f"the commit log ends at offset {end}, and was on disk up to {known}: files are missing; is a disk not "
            f"mounted? {HOW[0].upper()}{HOW[1:]}",
        )
    if not files and checkpoint.physic_ms > 0 and any(queue.next_index for queue in queues):
        raise StoreDamaged(
            str(log.queue.folder),
            "there is no commit log file, but there are consume queues; is a disk not mounted? To start again, remove "
            f"{queues.folder} as well",
        )


def _refuse_without_first(log: CommitLog, queues: ConsumeQueueTable, checkpoint: Checkpoint) -> None:
    """StoreDamaged when files are gone that were not deleted by retention. It is not known of a store of RocketMQ's."""
    first, kept_from = log.queue.files[0], checkpoint.kept_from
    if first.base <= max(kept_from, 0):
        return
    gone = sum(queue.first_at(first.base) - queue.first_at(max(kept_from, 0)) for queue in queues)
    if kept_from == NOT_KNOWN and gone:
        logger.info(
            "it is unknown whether the log's older files expired or were lost",
            extra={"event": "log_start_unknown", "min_physical_offset": first.base, "messages_before": gone},
        )
    elif kept_from != NOT_KNOWN:
        raise StoreDamaged(
            str(first.path),
            f"the commit log begins at offset {first.base}, and had everything from {kept_from} on: files are missing, "
            f"with {gone} messages of its queues; is a disk not mounted? {HOW[0].upper()}{HOW[1:]}",
        )


def _synced_offset(log: CommitLog, queues: ConsumeQueueTable, index: IndexService, checkpoint: Checkpoint) -> int:
    """Return the offset below which log, queues and index are complete; 0 when that is not known or not believed.

    Folders get mixed, and files deleted by hand to have them rebuilt: queues and index must reach as far as they did.
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


def _filled_end(log: CommitLog) -> int:
    """Guess where the log ends, from the disk blocks of its last files."""
    for file in reversed(log.queue.files):
        used_bytes = file.path.stat().st_blocks * 512
        if used_bytes:
            return min(file.base + used_bytes, file.end)
    return 0


def _files_made(kept: Mapping[ConsumeQueue, int]) -> int:
    """Return how many files queues with so many units have had, without those queues that have no file at all."""
    return sum(queue.files_made(index) for queue, index in kept.items() if queue.bases)


def _sync_from(start: int, log: CommitLog) -> None:
    """Sync what the last run wrote and perhaps did not sync: with `end_log` it counts as flushed."""
    for file in log.queue.files:
        if file.end > start:
            file.sync()


def _sync_queues(queues: list[ConsumeQueue]) -> None:
    """Sync what was erased, before anything is written there, and what the last run did not sync."""
    if len(queues) > SYNCED_ONE_BY_ONE:
        file_bytes.sync_file_system(queues[0].folder)
        return
    sync_paths({queue.path_of(base) for queue in queues for base in queue.bases})  # it may have begun several
    for queue in queues:
        file_bytes.sync_folder(queue.folder)
