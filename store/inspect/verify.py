"""Everything in a store compared with everything else, in one pass over the log and one over the queues.

The queues are read first, each for itself. Then the log is read in order: each record is checked, and looked for in its
queue and in the index. A queue with more units than were met that way is gone through again, unit by unit. What a live
broker has not written yet, and what a crashed one adds at its next start, is not taken for damage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gantrymq.message import properties as names
from gantrymq.message.record import RecordFields
from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from store.base.config import MessageStoreConfig
from store.base.delay import DelayLevels
from store.base.timer import due_ms_of
from store.inspect.check import report_break, report_missing_ends, unit_fault
from store.inspect.ext_reader import is_address
from store.inspect.files import check_run
from store.inspect.findings import Findings, Level
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.index_check import IndexCheck
from store.inspect.log_reader import BreakKind, LogBreak, LogRecord
from store.inspect.queue_reader import QueueReader, Unit
from store.log.scan import has_queue_unit

PROGRESS_RECORDS = 50_000
CLOCK_STEP_MS = 1000  # clocks are set back now and then; by more than this is worth a word
DELAY_LEVELS = DelayLevels(MessageStoreConfig.delay_levels)

Progress = Callable[[int, int], None]  # offset reached, offset where the files end


class VerifyResult(NamedTuple):
    """`log_end`: where the valid records end; `damaged_at`: breaks before it. The last three: what to rebuild."""

    findings: Findings
    records: int
    units: int
    index_entries: int
    log_end: int
    log_break: LogBreak
    damaged_at: list[LogBreak]
    bad_queues: set[tuple[str, int]]
    stale_queues: set[tuple[str, int]]  # good, but with units of an earlier life behind the end
    is_index_bad: bool


@dataclass(slots=True)
class _QueueState:
    """What is known about one queue while the log is read."""

    reader: QueueReader | None
    end: int = 0  # index behind its valid units
    in_log: int = 0  # units that name messages the log still has
    met: int = 0  # of those, how many their record was found for
    expected: int = -1  # next queue offset, -1 before the first record
    missing: int = 0  # records without unit
    missing_from: tuple[int, int] = (0, 0)  # queue offset, physical offset
    missing_to: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)


def verify_store(
    folder: StoreFolder, findings: Findings | None = None, progress: Progress | None = None
) -> VerifyResult:
    """Check everything. Takes about ten microseconds a message."""
    findings = findings if findings is not None else Findings()
    for finding in folder.findings:
        findings.add(*finding)
    return _Verification(folder, findings, progress).run()


class _Verification:
    def __init__(self, folder: StoreFolder, findings: Findings, progress: Progress | None) -> None:
        self._folder = folder
        self._findings = findings
        self._progress = progress
        self._states: dict[tuple[bytes, int], _QueueState] = {}
        self._index = IndexCheck(folder, findings)
        self._tags: dict[bytes, int] = {}
        self._bad_queues: set[tuple[str, int]] = set()
        self._stale_queues: set[tuple[str, int]] = set()
        self._damaged: list[LogBreak] = []
        self._records = 0
        self._units = 0
        self._last_ms = 0
        # a message that is not in its queue yet: nothing for a live broker, the next start's work after a crash
        self._late = {StoreState.LIVE: Level.NOTE, StoreState.CRASHED: Level.WARNING}.get(folder.state, Level.ERROR)

    def run(self) -> VerifyResult:
        check_run(self._folder.log.files, self._findings, "commit log")
        report_missing_ends(self._folder, self._findings)
        for (topic, queue_id), queue in self._folder.queues.items():
            self._states[topic.encode(), queue_id] = self._read_queue(queue)
        self._folder.look_at_log_again()
        end, last = self._read_log()
        for (topic_bytes, queue_id), state in self._states.items():
            self._judge_queue((topic_bytes.decode("utf-8", "replace"), queue_id), state)
        is_index_bad = self._index.finish(end)
        return VerifyResult(
            self._findings, self._records, self._units, self._index.entries, end, last, self._damaged,
            self._bad_queues, self._stale_queues, is_index_bad,
        )  # fmt: skip

    # -- queues, each for itself ---------------------------------------------------------------------------------

    def _read_queue(self, queue: QueueReader) -> _QueueState:
        findings = self._findings
        if not check_run(queue.files, findings, "queue"):
            self._bad_queues.add((queue.topic, queue.queue_id))
        state = _QueueState(queue, end=queue.first_index)
        log_min = self._folder.log.min_offset
        last_offset = -1
        fillers_inside = 0
        for unit in queue.units():
            state.end = unit.queue_offset + 1
            if unit.is_filler:
                fillers_inside += last_offset >= 0
                continue
            if unit.physical_offset <= last_offset:
                path, position = queue.place_of(unit.queue_offset)
                text = (
                    f"{queue}: unit {unit.queue_offset} names offset {unit.physical_offset}, "
                    f"the one before it {last_offset}"
                )
                findings.add(Level.ERROR, "unit_order", path, position, text)
                self._bad_queues.add((queue.topic, queue.queue_id))
            last_offset = unit.physical_offset
            state.in_log += unit.physical_offset >= log_min
        self._units += state.end - queue.first_index
        if fillers_inside:
            text = f"{queue}: {fillers_inside} fillers stand for messages that were lost"
            findings.add(Level.NOTE, "fillers", queue.folder, -1, text)
        behind = queue.next_behind(state.end)
        if behind is not None:
            self._judge_behind(queue, state.end, behind)
        return state

    def _judge_behind(self, queue: QueueReader, end: int, behind: Unit) -> None:
        """Units behind the first invalid one: of this life, then some between are lost; or of an earlier one."""
        path, position = queue.place_of(end)
        if unit_fault(self._folder, queue, behind):
            text = f"{queue}: stale units behind the end, from index {behind.queue_offset} on"
            self._findings.add(Level.NOTE, "stale_units", path, position, text)
            self._stale_queues.add((queue.topic, queue.queue_id))
        elif self._folder.state is not StoreState.LIVE:
            text = f"{queue}: units {end} to {behind.queue_offset - 1} are not valid, good ones follow"
            self._findings.add(Level.ERROR, "unit_hole", path, position, text)
            self._bad_queues.add((queue.topic, queue.queue_id))

    # -- the log -------------------------------------------------------------------------------------------------

    def _read_log(self) -> tuple[int, LogBreak]:
        log = self._folder.log
        files_end = log.begun_files()[-1].end if log.files else 0
        end = log.min_offset
        last: LogBreak | None = None
        for found in log.read(is_repeated=self._is_repeated):
            if isinstance(found, LogRecord):
                self._take(found)
                end = found.end
                if self._progress is not None and self._records % PROGRESS_RECORDS == 0:
                    self._progress(end, files_end)
                continue
            last = found
            report_break(found, self._folder.state, self._findings)
            if found.kind is BreakKind.DAMAGE:
                self._damaged.append(found)
            else:
                end = max(end, found.physical_offset)
        if last is None:
            last = LogBreak(BreakKind.END, self._folder.commit_logs[0], 0, 0, "", -1)
        return end, last

    def _is_repeated(self, fields: RecordFields) -> bool:
        state = self._states.get((fields.topic, fields.queue_id))
        return has_queue_unit(fields.sys_flag) and state is not None and 0 <= fields.queue_offset < state.expected

    def _take(self, found: LogRecord) -> None:
        """Look at one record: its time, its place in the queue, its unit, its keys."""
        self._records += 1
        fields = found.fields
        if fields.store_timestamp < self._last_ms - CLOCK_STEP_MS:
            text = (
                f"store time of the record at {found.physical_offset} is {self._last_ms - fields.store_timestamp} ms "
                "before its predecessor's: the clock was set back, or stale records came back to life"
            )
            self._report_record(Level.WARNING, "time_step", found, text)
        self._last_ms = fields.store_timestamp
        self._index.take(found.physical_offset, fields)
        if not has_queue_unit(fields.sys_flag):
            return
        key = (fields.topic, fields.queue_id)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _QueueState(None)
        queue_offset = fields.queue_offset
        if state.expected >= 0 and queue_offset != state.expected:
            self._report_jump(found, state, queue_offset)
        state.expected = queue_offset + 1
        unit = state.reader.unit_at(queue_offset) if state.reader is not None and queue_offset < state.end else None
        if unit is None or unit.is_filler or unit.physical_offset != found.physical_offset:
            if not state.missing:
                state.missing_from = (queue_offset, found.physical_offset)
            state.missing += 1
            state.missing_to = queue_offset
            return
        state.met += 1
        if unit.size_bytes != fields.size_bytes:
            state.faults.append((queue_offset, f"says {unit.size_bytes} bytes, the record has {fields.size_bytes}"))
        elif fault := self._tags_fault(state.reader, unit, fields):
            state.faults.append((queue_offset, fault))

    def _report_record(self, level: Level, code: str, found: LogRecord, text: str) -> None:
        file = self._folder.log.find(found.physical_offset)
        assert file is not None
        self._findings.add(level, code, file.path, found.physical_offset - file.base, text)

    def _report_jump(self, found: LogRecord, state: _QueueState, queue_offset: int) -> None:
        topic = found.fields.topic.decode("utf-8", "replace")
        if queue_offset == 0:  # the topic was deleted and created again: what came before is in no queue, rightly
            text = (
                f"{topic}-{found.fields.queue_id} starts again at offset {found.physical_offset}: it was deleted before"
            )
            self._report_record(Level.NOTE, "queue_restart", found, text)
            state.missing = 0
            return
        jump = "skips to" if queue_offset > state.expected else "goes back to"
        text = f"{topic}-{found.fields.queue_id}: queue offset {jump} {queue_offset}, {state.expected} was next"
        known = state.reader.unit_at(state.expected) if state.reader is not None else None
        is_known = self._damaged or (known is not None and known.is_filler)  # it was said, or a repair put up with it
        level = Level.NOTE if is_known and queue_offset > state.expected else Level.ERROR
        self._report_record(level, "queue_offset", found, text)

    def _tags_fault(self, queue: QueueReader | None, unit: Unit, fields: RecordFields) -> str:
        """Say what is wrong with a unit's third field; "" when nothing is."""
        code = unit.tags_code
        if is_address(code):
            assert queue is not None
            extension = self._folder.extension_of(queue)
            ext = extension.unit_of(code)
            if ext is None:
                return f"names extension position {code + (1 << 63)}, where no unit stands"
            if ext.store_timestamp != fields.store_timestamp:
                return f"its extension unit at {ext.position} says another store time"
            code = ext.tags_code
        if fields.topic == SCHEDULE_TOPIC.encode() and DELAY_LEVELS.level_of(fields.properties) > 0:
            if code < fields.store_timestamp:  # the levels are a setting: exact times can't be known here
                return f"is due at {code} ms, before it was stored"
            return ""
        if fields.topic == TIMER_TOPIC.encode() and code == due_ms_of(fields.properties):
            return ""  # RocketMQ 4.9, which does not know the timer, makes the tag's hash as usual
        tag = names.find_property(fields.properties, b"TAGS") or b""
        expected = self._tags.get(tag)
        if expected is None:
            if len(self._tags) > 10_000:
                self._tags.clear()
            expected = self._tags[tag] = names.string_hash_code(tag.decode("utf-8", "replace"))
        return "" if code == expected else f"has tags code {code}, the message's tag makes {expected}"

    # -- log and queues together ---------------------------------------------------------------------------------

    def _judge_queue(self, key: tuple[str, int], state: _QueueState) -> None:
        queue = state.reader
        name = f"{key[0]}-{key[1]}"
        if queue is None:
            self._judge_absent_queue(key, state)
            return
        for index, fault in state.faults:
            path, position = queue.place_of(index)
            self._findings.add(Level.ERROR, "unit_wrong", path, position, f"{name}: unit {index} {fault}")
            self._bad_queues.add(key)
        if state.missing:
            index, offset = state.missing_from
            path, position = queue.place_of(index)
            text = (
                f"{name}: {state.missing} messages have no unit, queue offsets {index} to {state.missing_to}, "
                f"the first at offset {offset}"
            )
            is_late = index >= state.end and not self._was_on_disk(offset)
            self._findings.add(self._late if is_late else Level.ERROR, "unit_missing", path, position, text)
            if self._folder.state is StoreState.STOPPED or not is_late:  # a start adds what a crash left out
                self._bad_queues.add(key)
        if state.met != state.in_log:
            self._find_strangers(queue, key)

    def _was_on_disk(self, physical_offset: int) -> bool:
        """Return whether a start takes for granted that the message's unit is there."""
        return physical_offset < self._folder.checkpoint.synced.end_offset

    def _judge_absent_queue(self, key: tuple[str, int], state: _QueueState) -> None:
        if not state.missing:
            return
        topic_exists = any(topic == key[0] for topic, _queue_id in self._folder.queues)
        folder = self._folder.root / "consumequeue" / key[0] / str(key[1])
        text = f"{key[0]}-{key[1]}: {state.missing} messages and no queue: the topic was deleted, or the queue was lost"
        is_lost = self._folder.state is StoreState.STOPPED or self._was_on_disk(state.missing_from[1])
        if topic_exists and is_lost:
            text = f"{key[0]}-{key[1]}: {state.missing} messages, but the queue's files are gone"
            self._findings.add(Level.ERROR, "queue_missing", folder, -1, text)
            self._bad_queues.add(key)
            return
        level = Level.NOTE if self._folder.state is StoreState.LIVE else Level.WARNING
        self._findings.add(level, "queue_absent", folder, -1, text)

    def _find_strangers(self, queue: QueueReader, key: tuple[str, int]) -> None:
        """Some units name no message of this queue: find out which."""
        log = self._folder.log
        for unit in queue.units():
            if unit.is_filler or unit.physical_offset < log.min_offset:
                continue
            if fault := unit_fault(self._folder, queue, unit):
                path, position = queue.place_of(unit.queue_offset)
                self._findings.add(
                    Level.ERROR, "unit_stray", path, position, f"{queue}: unit {unit.queue_offset} {fault}"
                )
                self._bad_queues.add(key)
