"""Keeps tables small and quick to read: merges small files, takes out what is too old or too much, clears up.

After each ingest, in the time that a run has for reading. Each step is one commit of Delta, so a run that is killed in
between leaves a whole lake; what is taken out is deleted hours later, so a program that reads it goes on.
"""

from __future__ import annotations

import functools
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from appliance.reports.errors import LakeBusy
from appliance.reports.lake.place import DAY
from appliance.reports.lake.range_reader import GROWING
from appliance.reports.lake.table import EXPIRED, RETENTION_HOURS, LakeFile, Table, no_hooks
from appliance.reports.samples.lines import DAY_MS

if TYPE_CHECKING:
    from deltalake import WriterProperties

logger = logging.getLogger(__name__)

SETTLED_MS = 3_600_000  # so long after its end a day of UTC gets no rows any more, but for late ones
FILES_MIN = 4  # fewer are not worth it
MERGED_BYTES = 64 << 20  # of the files that are made
ROWS_OF_A_GROUP = 1 << 17  # files are sorted by topic: groups that are not larger have few topics each


def days_to_merge(files: Sequence[LakeFile], now_ms: int) -> list[str]:
    """Days that are over and have several small files: each file is so rewritten a few times at most."""
    small = Counter(
        file.date
        for file in files
        if file.size_bytes <= MERGED_BYTES // 2 and (file.max_ms // DAY_MS + 1) * DAY_MS + SETTLED_MS <= now_ms
    )
    return sorted(day for day, count in small.items() if count >= FILES_MIN)


def compact(table: Table, *, until: float = float("inf"), now_ms: int | None = None) -> int:
    """Merge small files; return how many went. Call it inside `table.writing()`.

    until: the steady clock's time from which on no other day is begun.
    """
    merged = 0
    for day in days_to_merge(table.files(), _now_ms() if now_ms is None else now_ms):
        if time.monotonic() >= until:
            break
        with table.changed() as delta:
            done = delta.optimize.compact(
                partition_filters=[(DAY, "=", day)],
                target_size=MERGED_BYTES,
                max_concurrent_tasks=1,
                writer_properties=_as_tasks_write(table),
                post_commithook_properties=no_hooks(),
            )
        merged += int(done["numFilesRemoved"])
    if merged:
        facts = {"event": "report_lake_compacted", "lake": table.place.address, "files": merged}
        logger.info("small files of the lake merged", extra=facts)
    return merged


def expire(tables: Sequence[Table], *, days: float, size_bytes: int, now_ms: int | None = None) -> int:
    """Take out what is older than `days`, and of all tables together the oldest beyond `size_bytes`; 0: no limit.

    Returns how many files went. It takes the writers' lock for each table that loses some.
    """
    now_ms = _now_ms() if now_ms is None else now_ms
    files = [(file, table) for table in tables for file in table.files()]
    files.sort(key=lambda pair: pair[0].max_ms)
    too_much = sum(file.size_bytes for file, _ in files) - size_bytes if size_bytes else 0
    gone: dict[int, list[LakeFile]] = {}
    for file, table in files:
        is_too_old = days and file.max_ms < now_ms - days * DAY_MS
        if not is_too_old and too_much <= 0:
            break
        too_much -= file.size_bytes
        gone.setdefault(tables.index(table), []).append(file)
    for at, some in gone.items():
        with tables[at].writing():
            whole_from_ms = max(file.max_ms for file in some) + 1
            expired_ms = max(whole_from_ms, tables[at].numbers()(EXPIRED) or 0)
            tables[at].commit(removed=some, numbers={EXPIRED: expired_ms})
        facts = {"event": "report_lake_expired", "lake": tables[at].place.address, "files": len(some)}
        logger.info("old files of the lake removed", extra=facts)
    return sum(map(len, gone.values()))


def clear(table: Table, hours: int = RETENTION_HOURS) -> int:
    """Delete files that do not count any more, or never did; return how many. Call it inside `table.writing()`."""
    with table.changed(has_files=False) as delta:
        vacuum = functools.partial(
            delta.vacuum,
            retention_hours=hours,
            full=True,
            enforce_retention_duration=False,
            post_commithook_properties=no_hooks(),
        )
        left = table.place.there(vacuum(dry_run=True))  # which names what it has deleted already, too
        if left:
            vacuum(dry_run=False)
    return len(left)


def keep_up(tables: Sequence[Table], *, days: float, size_bytes: int, until: float) -> None:
    """All of it. Tables that another run is writing are left to that one."""
    try:
        expire(tables, days=days, size_bytes=size_bytes)
        for table in tables:
            with table.writing():
                compact(table, until=until)
                clear(table)
    except LakeBusy as busy:
        logger.info("the lake is being written", extra={"event": "report_lake_busy", "why": str(busy)})


def make_room(tables: Sequence[Table], *, days: float, size_bytes: int) -> None:
    """What of keep_up() a full disk has room for. Files go first: to take old ones out, a commit needs some bytes."""
    for table in tables:
        with table.writing():
            clear(table)
    expire(tables, days=days, size_bytes=size_bytes)


def _as_tasks_write(table: Table) -> WriterProperties:
    """The encodings of range_reader.py: without them merged files are twice as large."""
    from deltalake import ColumnProperties, WriterProperties

    growing = ColumnProperties(dictionary_enabled=False, encoding="DELTA_BINARY_PACKED")
    columns = {name: growing for name in GROWING if name in table.schema.names}
    return WriterProperties(compression="ZSTD", max_row_group_size=ROWS_OF_A_GROUP, column_properties=columns)


def _now_ms() -> int:
    return int(time.time() * 1000)
