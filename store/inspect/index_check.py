"""The key index compared with itself and, while the log is read, with the messages.

Entries are in the order of the log, so both are walked side by side. An index may begin later than the log (Apache's
broker throws index files away after a crash) and may end earlier (a crash); inside, each key of each message has its
entry and each entry its message.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from gantrymq.message import properties as names
from gantrymq.message import sysflag
from gantrymq.message.record import RecordFields
from store.inspect.findings import Findings, Level
from store.inspect.folder import StoreFolder, StoreState, index_hash
from store.inspect.index_reader import IndexEntry, IndexReader, read_header
from store.inspect.log_reader import LogRecord

Placed = tuple[IndexReader, IndexEntry]


class IndexCheck:
    """Give it each record in order (`take`), then ask `finish`."""

    def __init__(self, folder: StoreFolder, findings: Findings) -> None:
        self._folder = folder
        self._findings = findings
        self._indexes = folder.indexes()
        self._log_min = folder.log.min_offset
        self._is_bad = False
        self.entries = sum(max(index.header.next_entry - 1, 0) for index in self._indexes)
        self._first_offset = -1
        self._last_offset = max((index.header.end_offset for index in self._indexes), default=-1)
        self._unindexed = 0  # before the index begins
        self._late = 0  # behind its end
        self._missing: list[int] = []  # inside
        is_empty = all(read_header(file, folder.reader).next_entry <= 1 for file in folder.index_files)
        if folder.index_shape is None and not is_empty:
            text = "the number of slots can't be read from the files: index not verified; give --index-slots"
            # The first file of a live store may have been empty a moment ago, when its shape was looked for.
            level = Level.NOTE if folder.state is StoreState.LIVE else Level.WARNING
            findings.add(level, "index_shape", folder.index_files[-1].path, -1, text)
        self._walk = self._walk_all()
        self._next: Placed | None = next(self._walk, None)
        if self._next is not None:
            self._first_offset = self._next[1].physical_offset

    def take(self, physical_offset: int, fields: RecordFields) -> None:
        """Compare one record with the entries that name its offset."""
        if not self._indexes:
            return
        while self._next is not None and self._next[1].physical_offset < physical_offset:
            self._report_stranger(*self._next)
            self._next = next(self._walk, None)
        found: list[Placed] = []
        while self._next is not None and self._next[1].physical_offset == physical_offset:
            found.append(self._next)
            self._next = next(self._walk, None)
        if not found and b"KEY" not in fields.properties:
            return
        hashes = key_hashes(fields)
        for index, entry in found:
            if entry.key_hash not in hashes:
                self._report(index, entry, f"hash {entry.key_hash} is not a key's of the message at {physical_offset}")
        if hashes - {entry.key_hash for _index, entry in found} and not is_rolled_back(fields):
            if physical_offset > self._last_offset:
                self._late += 1
            elif physical_offset < self._first_offset or self._first_offset < 0:
                self._unindexed += 1
            else:
                self._missing.append(physical_offset)

    def finish(self, log_end: int) -> bool:
        """The log is read to its end: report what is left. Return whether the index needs to be rebuilt."""
        while self._next is not None:
            self._report_stranger(*self._next)
            self._next = next(self._walk, None)
        if not self._indexes:
            return self._is_bad
        folder = self._folder.root / "index"
        if self._unindexed:
            text = (
                f"{self._unindexed} messages with keys are older than the index, which begins at {self._first_offset}"
            )
            self._findings.add(Level.NOTE, "index_begins_late", folder, -1, text)
        if self._missing:
            text = f"{len(self._missing)} messages lack entries, the first at offset {self._missing[0]}"
            self._findings.add(Level.ERROR, "index_missing", folder, -1, text)
            self._is_bad = True
        if self._late:
            levels = {StoreState.LIVE: Level.NOTE, StoreState.CRASHED: Level.WARNING}
            level = levels.get(self._folder.state, Level.ERROR)
            text = f"the index ends at offset {self._last_offset}, {self._late} messages with keys follow"
            self._findings.add(level, "index_ends_early", folder, -1, text)
            self._is_bad = self._is_bad or self._folder.state is StoreState.STOPPED
        return self._is_bad

    def _report(self, index: IndexReader, entry: IndexEntry, text: str) -> None:
        self._is_bad = True
        place = index.place_of(entry.number)
        self._findings.add(Level.ERROR, "index_entry", index.file.path, place, f"entry {entry.number}: {text}")

    def _report_stranger(self, index: IndexReader, entry: IndexEntry) -> None:
        """The walk over the log has passed this entry's offset without a record there."""
        offset = entry.physical_offset
        if offset < self._log_min:
            return  # the message has expired; its index file goes when all of its messages have
        found = self._folder.log.record_at(offset, check_crc=False)
        if isinstance(found, LogRecord) and self._folder.state is StoreState.LIVE:
            return  # appended meanwhile
        if isinstance(found, LogRecord):
            if entry.key_hash not in key_hashes(found.fields):
                self._report(index, entry, f"hash {entry.key_hash} is not a key's of the message at {offset}")
            return
        self._report(index, entry, f"names offset {offset}, where no record stands: {found}")

    def _walk_all(self) -> Iterator[Placed]:
        """Yield the entries of all files in the order of the log, checking each file's own structure meanwhile."""
        for index in self._indexes:
            yield from self._walk_file(index)

    def _walk_file(self, index: IndexReader) -> Iterator[Placed]:
        slots = index.shape.slots
        heads = array("i", bytes(4 * slots)) if self._folder.state is not StoreState.LIVE else None
        used, last_offset = 0, -1
        for entry in index.entries():
            if entry.key_hash < 0:
                self._report(index, entry, f"hash {entry.key_hash} is negative")
                continue
            if heads is not None:
                slot = entry.key_hash % slots
                used += not heads[slot]
                if entry.previous != heads[slot]:
                    text = f"says entry {entry.previous} came before it in its chain, it was {heads[slot]}"
                    self._report(index, entry, text)
                heads[slot] = entry.number
            if entry.physical_offset < last_offset:
                self._report(index, entry, f"names offset {entry.physical_offset}, the one before {last_offset}")
                continue
            last_offset = entry.physical_offset
            yield index, entry
        if heads is not None:
            self._compare_slots(index, heads, used, last_offset)

    def _compare_slots(self, index: IndexReader, heads: array[int], used: int, last_offset: int) -> None:
        path, header = index.file.path, index.header
        if header.used_slots != used:
            text = f"header says {header.used_slots} used slots, the entries use {used}"
            self._findings.add(Level.WARNING, "index_header", path, 32, text)
        if last_offset >= 0 and header.end_offset != last_offset:
            text = f"header says the last message is at {header.end_offset}, the last entry says {last_offset}"
            self._findings.add(Level.ERROR, "index_header", path, 24, text)
            self._is_bad = True
        stored = index.heads()
        if stored == heads:
            return
        for slot, (says, should) in enumerate(zip(stored, heads, strict=True)):
            if says != should and not (should == 0 and says >= header.next_entry):
                text = f"slot {slot} names entry {says}, its newest one is {should}"
                self._findings.add(Level.ERROR, "index_slot", path, 40 + 4 * slot, text)
                self._is_bad = True


def key_hashes(fields: RecordFields) -> set[int]:
    """Return the hashes that a message should have in the index."""
    topic = fields.topic.decode("utf-8", "replace")
    unique = names.find_property(fields.properties, b"UNIQ_KEY")
    keys = names.find_property(fields.properties, b"KEYS")
    found = [unique] if unique else []
    found += [key for key in keys.split(b" ") if key] if keys else []
    return {index_hash(topic, key.decode("utf-8", "replace")) for key in found}


def is_rolled_back(fields: RecordFields) -> bool:
    return sysflag.transaction_type(fields.sys_flag) == sysflag.TRANSACTION_ROLLBACK
