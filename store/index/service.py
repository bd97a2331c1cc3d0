"""The key index as a whole: hashing the keys of a message, rolling index files, finding messages by key."""

from __future__ import annotations

import asyncio
import datetime
import logging
import operator
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from gantrymq.message import properties as names
from store.base import file_bytes
from store.base.config import MessageStoreConfig
from store.index.file import Entry, IndexDamaged, IndexFile
from store.queues.topic_slot import HASH_MASK, TopicSlot

logger = logging.getLogger(__name__)

NAME_DIGITS = 17
PENDING_MAX = 256  # indexing so many takes about a third of a millisecond
PREFIXES_MAX = 4096
STEMS_MAX = 1024
SIGN = 0x80000000
ABSOLUTE_MASK = 0x7FFFFFFF  # the absolute value of -2**31 does not fit: RocketMQ takes 0
TAIL_UNITS = 8  # a unique key's last characters change with each message, those before them once a minute
_TAIL_POWERS = names.powers_of_31(TAIL_UNITS)
_UNIQ_KEY = names.UNIQ_KEY.encode()
_UNIQ_KEY_MARK = _UNIQ_KEY + b"\x01"
_KEYS = names.KEYS.encode()
_KEYS_MARK = _KEYS + b"\x01"
_multiply = operator.mul


Pending = tuple[int, bytes, int, int]  # TopicSlot.prefix_hash, properties, physical offset, store timestamp


class IndexGap(NamedTuple):
    """Messages without a file: from one physical offset to another. A message's keys may be in two files."""

    start: int
    end: int
    entries_before: int  # of the message at `start` the file before has so many
    entries_behind: int  # and of that at `end` the file behind; -1: there is none, the log ends or goes on there


class IndexService:
    """Index files by age.

    Messages collect in `pending`, in the order of the commit log, and are indexed some hundred at a time: half the
    price of one by one. StoreView indexes what is pending before a query. What a crash takes from the list comes
    back with recovery, since the checkpoint never covers it. All but `sync` happens on the loop.
    """

    def __init__(self, folder: Path, config: MessageStoreConfig, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._rebuild_folder = folder.with_name("index_rebuild")
        self.set_aside_event = asyncio.Event()
        self._slots = config.index_slots
        self._entries = config.index_entries
        self._clock = clock
        self.enabled = config.index_enable  # not while the disk is full
        self._prefix_hashes: dict[bytes, int] = {}
        self._stems: dict[bytes, tuple[int, int]] = {}
        self.active: IndexFile | None = None
        self._named: IndexFile | None = None  # the newest file whose name the disk surely has
        self.files: list[IndexFile] = []
        self.pending: list[Pending] = []

    def load(self) -> None:
        """Open the files of the folder. Other files are logged and left alone."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if not (path.name.isdecimal() and len(path.name) == NAME_DIGITS and path.is_file()):
                logger.warning("stray file ignored", extra={"event": "stray_file", "path": str(path)})
                continue
            self.files.append(IndexFile(path, self._slots, self._entries))
        self._choose_active()

    def check(self) -> None:
        """After a clean stop: set aside the files whose header is damaged."""
        for file in list(self.files):
            if not file.is_sane():
                self.set_aside(file, "header and entries disagree")
            elif file.count <= 1 and file is not self.files[-1]:
                self.set_aside(file, "is empty, and others follow")

    def expect(self, index_end: int) -> None:
        """There was once an entry of the message at `index_end`: when there are none at all, the index is lost.

        A header that is a little older is no damage: recovery puts the entries behind it again.
        """
        if self.last_update[1] >= index_end:
            return
        if not self.files:
            self._mark(f"{self._new_name():0{NAME_DIGITS}d}")
            logger.warning("index is gone", extra={"event": "index_gone", "folder": str(self._folder)})
        elif self.files[-1].first_offset() < 0:
            self.set_aside(self.files[-1], "has lost its entries")

    def recover(self, physical_end: int) -> None:
        """After a crash: keep what indexes messages before `physical_end`; recovery adds those behind it again."""
        for file in list(self.files):
            first = file.first_offset()
            if first < 0 and any(0 <= each.first_offset() < physical_end for each in self._behind(file)):
                self.set_aside(file, "is empty, and others follow")
            elif not 0 <= first < physical_end:
                self.files.remove(file)
                file.delete()
            elif not (1 < file.count <= self._entries and file.cut_below(physical_end)):
                self.set_aside(file, "damaged by a crash")
        self._choose_active()

    def _behind(self, file: IndexFile) -> list[IndexFile]:
        return self.files[self.files.index(file) + 1 :]

    # -- damage --------------------------------------------------------------------------------------------------

    def set_aside(self, file: IndexFile, reason: str) -> None:
        """Take a damaged file out of service; a marker tells IndexRebuilder, of this run or the next."""
        self._mark(file.path.name)
        self.files.remove(file)
        if self.active is file:
            self.active = None
        file.delete()
        logger.warning(
            "index file damaged: rebuilding it from the log",
            extra={"event": "index_file_damaged", "path": str(file.path), "reason": reason},
        )

    def _mark(self, name: str) -> None:
        self._rebuild_folder.mkdir(exist_ok=True)
        (self._rebuild_folder / name).touch()
        file_bytes.sync_folder(self._rebuild_folder)
        self.set_aside_event.set()

    def markers(self) -> list[Path]:
        """Return the markers of the files that have to be rebuilt, oldest first; the names are the files'."""
        if not self._rebuild_folder.is_dir():
            return []
        return sorted(path for path in self._rebuild_folder.iterdir() if path.name.isdecimal())

    def gap(self, name: str, end: int) -> IndexGap:
        """Return which messages a file of this name had that no other file has; `end` is where the log ends."""
        before = [file for file in self.files if file.path.name < name and file.count > 1]
        behind = [file for file in self.files if file.path.name > name and file.count > 1]
        waiting = self.pending[0][2] if self.pending else end
        start, known = (before[-1].end_offset, before[-1].entries_of_ends()[1]) if before else (0, 0)
        stop, known_behind = (behind[0].begin_offset, behind[0].entries_of_ends()[0]) if behind else (waiting, -1)
        return IndexGap(start, stop, known, known_behind)

    def adopt(self, file: IndexFile) -> None:
        """Put a rebuilt file among the others. FileExistsError when its name is taken."""
        path = self._folder / file.path.name
        self._folder.mkdir(exist_ok=True)
        if path.exists():
            raise FileExistsError(str(path))
        file.path.replace(path)
        file.path = path
        self.files.append(file)
        self.files.sort(key=lambda each: each.path.name)

    def sync_names(self) -> None:
        """Sync the names of adopted files. Blocks."""
        file_bytes.sync_folder(self._folder)
        file_bytes.sync_folder(self._rebuild_folder)

    # -- entries -------------------------------------------------------------------------------------------------

    def put_pending(self) -> None:
        """Index the pending messages by their unique keys and their keys. OSError when the disk is full."""
        pending = self.pending
        if not pending:
            return
        self.pending = []
        entries: list[Entry] = []
        add = entries.append
        stem_of = self._stems.get
        for prefix_hash, properties, physical_offset, timestamp_ms in pending:
            at = properties.rfind(_UNIQ_KEY_MARK)
            if at >= 0:
                start = at + 9
                stop = properties.find(b"\x02", start)
                if stop < 0:
                    stop = len(properties)
                known = stem_of(properties[start : stop - 2])
                if (
                    known is not None
                    and (not at or properties[at - 1] == 2)
                    and (a := properties[stop - 2]) < 128 > (b := properties[stop - 1])
                ):
                    power, stem_hash = known
                    code = (prefix_hash * power + stem_hash + a * 31 + b) & HASH_MASK
                    add((code if code < SIGN else -code & ABSOLUTE_MASK, physical_offset, timestamp_ms))
                elif key := names.find_property(properties, _UNIQ_KEY):
                    self._remember(key)
                    add((key_hash(prefix_hash, key), physical_offset, timestamp_ms))
            at = properties.rfind(_KEYS_MARK)
            if at >= 0:
                if at and properties[at - 1] != 2:
                    keys = names.find_property(properties, _KEYS) or b""
                else:
                    stop = properties.find(b"\x02", at + 5)
                    keys = properties[at + 5 :] if stop < 0 else properties[at + 5 : stop]
                for key in keys.split(b" ") if b" " in keys else (keys,):
                    if key:
                        add((key_hash(prefix_hash, key), physical_offset, timestamp_ms))
        try:
            self._write(entries)
        except OSError:  # what is left waits for space; the message at which it ended may get an entry twice
            done_to = self.last_update[1]
            self.pending = [each for each in pending if each[2] >= done_to] + self.pending
            raise

    def search(
        self, slot: TopicSlot, key: str, limit: int, begin_ms: int, end_ms: int
    ) -> Generator[None, None, list[int]]:
        """Return the physical offsets of messages with this key's hash, newest first, but for pending ones.

        Others may have a turn after each step: files that go meanwhile are left out.
        """
        wanted = key_hash(slot.prefix_hash, key.encode("utf-8", "surrogatepass"))
        offsets: list[int] = []
        for file in reversed(self.files.copy()):
            if file.begin_ms <= end_ms and file.end_ms >= begin_ms and file in self.files:
                try:
                    for _ in file.search(wanted, offsets, limit, begin_ms, end_ms):
                        yield
                        if file not in self.files:
                            break
                except IndexDamaged as exc:
                    self.set_aside(file, str(exc))
                    continue
            if file.begin_ms < begin_ms or len(offsets) >= limit:
                break
        return offsets

    @property
    def last_update(self) -> tuple[int, int]:
        """(store timestamp, physical offset) of the newest entry."""
        return (self.files[-1].end_ms, self.files[-1].end_offset) if self.files else (0, 0)

    def sync(self) -> int:
        """Sync all entries but pending ones; return the timestamp up to which the disk has them. Blocks."""
        stamp = self.last_update[0]
        for file in list(self.files):
            if file.dirty:
                file.sync()
        newest = self.files[-1] if self.files else None
        if newest is not self._named:
            file_bytes.sync_folder(self._folder)
            file_bytes.sync_folder(self._folder.parent)
            self._named = newest
        return stamp

    def take_expired(self, min_physical_offset: int) -> list[IndexFile]:
        """Remove and return leading files, never the last, whose messages are all gone."""
        expired = []
        while len(self.files) > 1 and self.files[0].end_offset < min_physical_offset:
            expired.append(self.files.pop(0))
        return expired

    def close(self) -> None:
        for file in self.files:
            file.close()
        self.files = []
        self.active = None

    def _write(self, entries: list[Entry]) -> None:
        """Give the entries to the newest file, and to new ones as they fill up."""
        file = self.active
        if file is None:
            file = self._roll()  # RocketMQ too makes one at the first message, with or without a key
        done = file.put_many(entries)
        while done < len(entries):
            done = self._roll().put_many(entries, done)

    def _remember(self, key: bytes) -> None:
        """Keep the hash of all but the last two characters of a client-made key, and the power its topic gets.

        The client counts in these two. The characters before them change with the time, once a millisecond at most;
        those before the last eight once a minute.
        """
        stem, prefix = key[:-2], key[:-TAIL_UNITS]
        if not prefix or not stem.isascii():
            return
        prefix_hash = self._prefix_hashes.get(prefix)
        if prefix_hash is None:
            if len(self._prefix_hashes) >= PREFIXES_MAX:
                self._prefix_hashes.clear()
            prefix_hash = self._prefix_hashes[prefix] = names.hash_of_ascii(prefix) * pow(31, TAIL_UNITS, 1 << 32)
        if len(self._stems) >= STEMS_MAX:
            self._stems.clear()
        middle = key[-TAIL_UNITS:-2]
        self._stems[stem] = (
            pow(31, len(key), 1 << 32),
            (prefix_hash + sum(map(_multiply, middle, _TAIL_POWERS))) & HASH_MASK,
        )

    def _roll(self) -> IndexFile:
        """Open the next index file, named by the local time."""
        file = IndexFile(self._folder / f"{self._new_name():0{NAME_DIGITS}d}", self._slots, self._entries)
        if self.active is not None:
            file.preset(self.active)
        self.files.append(file)
        self.active = file
        return file

    def _new_name(self) -> int:
        """Return a file's name by the clock; but a clock set back must not change the order."""
        now = datetime.datetime.fromtimestamp(self._clock())
        name = int(now.strftime("%Y%m%d%H%M%S")) * 1000 + now.microsecond // 1000
        others = [*(file.path for file in self.files[-1:]), *self.markers()]
        return max([name, *(int(path.name) + 1 for path in others)])

    def _choose_active(self) -> None:
        self.active = self.files[-1] if self.files else None


def key_hash(prefix_hash: int, key: bytes) -> int:
    """Return the index hash of `topic#key`: the absolute value of Java's hash, 0 for the one that has none."""
    if key.isascii():
        units = len(key)
        code = names.hash_of_ascii(key)
    else:
        text = key.decode("utf-8", "replace")
        units = len(text.encode("utf-16-le")) // 2
        code = names.string_hash_code(text)
    code = (prefix_hash * pow(31, units, 1 << 32) + code) & HASH_MASK
    return code if code < SIGN else -code & ABSOLUTE_MASK
