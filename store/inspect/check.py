"""A quick look at a store folder: sizes, names, markers, and whether log, queues and index end at the same place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from gantrymq.message import properties as names
from gantrymq.message.topics import SCHEDULE_TOPIC
from store.base.config import CONSUME_QUEUE_UNIT_BYTES as UNIT_BYTES
from store.base.errors import NewerFormat, StampDamaged
from store.inspect.files import check_run
from store.inspect.findings import Findings, Level
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.log_reader import BreakKind, LogBreak, LogRecord
from store.inspect.queue_reader import QueueReader, Unit
from store.log.scan import has_queue_unit
from store.startup.checkpoint import CHECKPOINT_BYTES, NOT_KNOWN
from store.startup.format_stamp import STAMP_NAME, STORE, check_format


class Fact(NamedTuple):
    """A line of the table: what, and how it stands."""

    name: str
    text: str


class CheckResult(NamedTuple):
    facts: list[Fact]
    findings: Findings


def check_store(folder: StoreFolder) -> CheckResult:
    """Look at each part. Reads the newest file's records at most, and of each queue its last units."""
    findings = Findings()
    for finding in folder.findings:
        findings.add(*finding)
    facts = [_state(folder, findings), _format(folder, findings), _checkpoint(folder, findings)]
    ends = _queue_ends(folder, findings)
    folder.look_at_log_again()
    facts += _commit_log(folder, findings, ends)
    facts += _queues(folder, ends)
    facts += _index(folder, findings)
    return CheckResult(facts, findings)


def _state(folder: StoreFolder, findings: Findings) -> Fact:
    if folder.state is StoreState.LIVE:
        return Fact("state", f"live: locked by {folder.lock_holder}")
    if folder.state is StoreState.STOPPED:
        return Fact("state", "stopped cleanly, not locked")
    text = "abort marker present and no process holds the lock: the last stop was a crash; the next start recovers"
    findings.add(Level.WARNING, "abort_marker", folder.root / "abort", -1, text)
    return Fact("state", "crashed: abort marker present, not locked")


def _format(folder: StoreFolder, findings: Findings) -> Fact:
    path = folder.root / STAMP_NAME
    try:
        stamp = check_format(folder.root, STORE)
    except (NewerFormat, StampDamaged) as exc:
        findings.add(
            Level.ERROR, "newer_format" if isinstance(exc, NewerFormat) else "damaged_stamp", path, -1, str(exc)
        )
        return Fact("format", f"{exc.found}, newer than known" if isinstance(exc, NewerFormat) else "not readable")
    if not stamp.format:
        return Fact("format", "RocketMQ's, without a stamp; the next start gives it one")
    return Fact("format", f"{stamp.format}, stamped by GantryMQ {stamp.written_by}")


def _checkpoint(folder: StoreFolder, findings: Findings) -> Fact:
    path, stamps = folder.root / "checkpoint", folder.checkpoint
    if not path.exists():
        findings.add(
            Level.WARNING, "checkpoint_missing", path, -1, "missing: a start after a crash reads the whole log"
        )
        return Fact("checkpoint", "missing")
    size = path.stat().st_size
    if size != CHECKPOINT_BYTES:
        findings.add(Level.WARNING, "checkpoint_size", path, -1, f"is {size} bytes long, not {CHECKPOINT_BYTES}")
    text = f"log to {_time(stamps.physic_ms)}, queues to {_time(stamps.logics_ms)}, index to {_time(stamps.index_ms)}"
    return Fact("checkpoint", text)


def _time(stamp_ms: int) -> str:
    if not 0 < stamp_ms < 1 << 47:
        return str(stamp_ms)
    return datetime.fromtimestamp(stamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _queue_ends(folder: StoreFolder, findings: Findings) -> dict[tuple[str, int], tuple[int, Unit | None]]:
    """Each queue's end index and last unit that names a message."""
    ends: dict[tuple[str, int], tuple[int, Unit | None]] = {}
    for key, queue in folder.queues.items():
        check_run(queue.files, findings, "queue")
        end = queue.quick_end()
        last = queue.unit_at(end - 1) if end > queue.first_index else None
        ends[key] = (end, None if last is not None and last.is_filler else last)
    return ends


def _commit_log(
    folder: StoreFolder, findings: Findings, ends: dict[tuple[str, int], tuple[int, Unit | None]]
) -> list[Fact]:
    log = folder.log
    check_run(log.files, findings, "commit log")
    report_missing_ends(folder, findings)
    if not log.files:
        findings.add(Level.NOTE, "no_commit_log", folder.commit_logs[0], -1, "no commit log file")
        return [Fact("commit log", "no files")]
    newest = max((last.physical_offset for _end, last in ends.values() if last is not None), default=-1)
    begun = log.begun_files()
    start = begun[-1].base
    if newest >= start and isinstance(log.record_at(newest), LogRecord):
        start = newest
    newest_end = max((last.physical_end for _end, last in ends.values() if last is not None), default=log.min_offset)
    end, broken, unqueued = start, None, 0
    for found in log.read(start):
        if isinstance(found, LogRecord):
            end = found.end
            unqueued += found.physical_offset >= newest_end and has_queue_unit(found.fields.sys_flag)
        else:
            broken = found
            if found.kind is BreakKind.DAMAGE:
                break
    assert broken is not None
    end = max(end, broken.physical_offset)
    report_break(broken, folder.state, findings)
    _compare_ends(folder, findings, ends, end)
    if unqueued and folder.state is not StoreState.LIVE:
        text = f"{unqueued} messages behind offset {newest_end} are in no queue: not dispatched, or of a deleted topic"
        findings.add(Level.WARNING, "queues_behind", broken.path, -1, text)
    size = sum(file.size for file in log.files)
    return [
        Fact(
            "commit log",
            f"{len(begun)} files in use of {len(log.files)}, {folder.log_file_bytes:,} bytes each, {size:,} together",
        ),
        Fact("offsets", f"{log.min_offset:,} to {end:,} ({end - log.min_offset:,} bytes)"),
        *_begin(folder),
        Fact("queues behind", f"{max(end - newest_end, 0):,} bytes of the log"),
    ]


def _begin(folder: StoreFolder) -> list[Fact]:
    """What is not known: RocketMQ keeps no record of where its log begins."""
    before = sum(queue.count_between(0, folder.log.min_offset) for queue in folder.queues.values())
    if folder.promised_from() != NOT_KNOWN or not before:
        return []
    return [
        Fact("before that", f"{before:,} messages that queues name; whether they expired or were lost is not known")
    ]


def missing_end(folder: StoreFolder) -> list[str]:
    """Whether the log's last files are not there: it once reached further, or queues name messages of no file."""
    files, known = folder.log.files, folder.checkpoint.synced.log_end
    if folder.state is StoreState.LIVE:
        return []
    end = files[-1].end if files else 0
    if known > end:
        return [f"the files from offset {end} on are missing: it reached up to {known}"]
    if (
        not files
        and folder.checkpoint.physic_ms > 0
        and any(queue.quick_end() > queue.first_index for queue in folder.queues.values())
    ):
        return ["every file is missing, and there are consume queues: is a disk not mounted?"]
    return []


def missing_start(folder: StoreFolder) -> list[str]:
    """Whether the log's first files are not there: the store had promised more than it has."""
    begin, kept_from = folder.log.min_offset, folder.promised_from()
    if not folder.log.files or not 0 <= kept_from < begin:
        return []
    gone = sum(queue.count_between(kept_from, begin) for queue in folder.queues.values())
    return [f"the files from offset {kept_from} to {begin} are missing, with {gone} messages of its queues"]


def report_missing_ends(folder: StoreFolder, findings: Findings) -> None:
    for text in missing_start(folder) + missing_end(folder):
        findings.add(Level.ERROR, "files_missing", folder.commit_logs[0], -1, text)


def report_break(broken: LogBreak, state: StoreState, findings: Findings) -> None:
    """Turn a break of the record chain into a finding; the plain end is none."""
    if broken.kind is BreakKind.TORN:
        level = {StoreState.LIVE: Level.NOTE, StoreState.CRASHED: Level.WARNING}.get(state, Level.ERROR)
        text = f"torn tail at offset {broken.physical_offset}: {broken.reason}; nothing whole behind it"
        findings.add(level, "torn_tail", broken.path, broken.position, text)
    elif broken.kind is BreakKind.STALE:
        text = (
            f"stale tail: the log ends at offset {broken.physical_offset}, records of an earlier life start at "
            f"{broken.resumes_at}"
        )
        findings.add(Level.WARNING, "stale_tail", broken.path, broken.position, text)
    elif broken.kind is BreakKind.DAMAGE:
        text = (
            f"damage at offset {broken.physical_offset}: {broken.reason}; whole records go on at {broken.resumes_at}, "
            f"{broken.resumes_at - broken.physical_offset} bytes later"
        )
        findings.add(Level.ERROR, "damaged_record", broken.path, broken.position, text)


def _compare_ends(
    folder: StoreFolder, findings: Findings, ends: dict[tuple[str, int], tuple[int, Unit | None]], end: int
) -> None:
    for key, (index, last) in ends.items():
        queue = folder.queues[key]
        for unit in (*_last_of_full_files(queue, index), last):
            if unit is None or unit.is_filler or unit.physical_offset < folder.log.min_offset:
                continue
            reason = unit_fault(folder, queue, unit)
            if not reason:
                continue
            path, position = queue.place_of(unit.queue_offset)
            level = Level.ERROR if folder.state is StoreState.STOPPED else Level.WARNING
            if folder.state is StoreState.LIVE and unit.physical_end > end:
                continue  # written after the log was looked at
            text = f"{queue}: last unit of the file, index {unit.queue_offset}: {reason}"
            findings.add(level, "queue_end", path, position, text)


def _last_of_full_files(queue: QueueReader, end: int) -> Iterator[Unit | None]:
    """The last unit of each file but the one where the queue ends: two files of queues may have been exchanged."""
    for file in queue.files:
        last = file.base // UNIT_BYTES + queue.file_units - 1
        if last < end - 1:
            yield queue.unit_at(last)


def unit_fault(folder: StoreFolder, queue: QueueReader, unit: Unit) -> str:
    """Say why the unit does not name a message of this queue and index; "" when it does."""
    found = folder.log.record_at(unit.physical_offset, check_crc=False)
    if isinstance(found, str):
        return f"names offset {unit.physical_offset}, where no record stands: {found}"
    fields = found.fields
    if fields.size_bytes != unit.size_bytes:
        return f"says {unit.size_bytes} bytes, the record at {unit.physical_offset} has {fields.size_bytes}"
    topic = fields.topic.decode("utf-8", "replace")
    if (topic, fields.queue_id, fields.queue_offset) == (queue.topic, queue.queue_id, unit.queue_offset):
        return ""
    if names_queue(fields.properties, queue.topic, unit.queue_offset):
        return ""
    return (
        f"names the record at {unit.physical_offset}, which belongs to {topic}-{fields.queue_id}, "
        f"queue offset {fields.queue_offset}"
    )


def names_queue(properties: bytes, topic: str, index: int) -> bool:
    """Whether the message was dispatched to this queue beside its own (RocketMQ: multi-dispatch, light queues)."""
    table = names.decode_properties(properties)
    queues = table.get(names.INNER_MULTI_DISPATCH, "").split(",")
    offsets = table.get(names.INNER_MULTI_QUEUE_OFFSET, "").split(",")
    return (topic, str(index)) in zip(queues, offsets, strict=False)


def _queues(folder: StoreFolder, ends: dict[tuple[str, int], tuple[int, Unit | None]]) -> list[Fact]:
    topics = {topic for topic, _queue_id in ends}
    units = sum(end - folder.queues[key].first_index for key, (end, _last) in ends.items())
    waiting = sum(end for (topic, _queue_id), (end, _last) in ends.items() if topic == SCHEDULE_TOPIC)
    delayed = f", {waiting:,} of them delayed" if waiting else ""
    return [Fact("consume queues", f"{len(ends):,} queues of {len(topics):,} topics, {units:,} units{delayed}")]


def _index(folder: StoreFolder, findings: Findings) -> list[Fact]:
    files = folder.index_files
    if not files:
        return [Fact("index", "none")]
    for file in files:
        if file.size != files[-1].size:
            text = f"is {file.size} bytes long, the newest index file {files[-1].size}"
            findings.add(Level.WARNING, "index_size", file.path, -1, text)
    shape = folder.index_shape
    if shape is None:
        entries = "the number of slots can't be read from the files: give --index-slots"
    else:
        entries = f"{shape.slots:,} slots and {shape.entries:,} entries each"
    used = 0
    for index in folder.indexes():
        header = index.header
        used += header.next_entry - 1
        if header.next_entry > index.shape.entries or header.used_slots > index.shape.slots:
            text = f"header says {header.next_entry} entries, {header.used_slots} slots"
            findings.add(Level.ERROR, "index_header", index.file.path, 32, text)
    return [Fact("index", f"{len(files)} files, {used:,} entries; {entries}")]
