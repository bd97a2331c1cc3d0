"""Keeps a lake small and quick to read: merges small files, takes out what is too old or too much, writes checkpoints.

After each ingest, in the time that a run has for reading. What is taken out is deleted hours later (manifest.py), so a
run, or another program, that reads it goes on. A run that is killed in between leaves a whole lake.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from appliance.reports.compaction import groups_of, merge
from appliance.reports.errors import LakeBusy
from appliance.reports.lake_state import LakeFile
from appliance.reports.manifest import Lake
from appliance.reports.range_reader import StagedFile

logger = logging.getLogger(__name__)

DAY_MS = 86_400_000
Merge = Callable[[Callable[[Sequence[str]], StagedFile], Sequence[str]], StagedFile]


def compact(lake: Lake, run: Merge, *, until: float = float("inf"), now_ms: int | None = None) -> int:
    """Merge small files of days that are over; return how many went. Call it inside `lake.writing()`.

    run: has a function applied to a value by a Spark task. until: the steady clock's time from which on none is begun.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    merged = 0
    for group in groups_of(lake.files(), now_ms):
        if time.monotonic() >= until:
            break
        staged = run(functools.partial(merge, place=lake.place), [file.path for file in group])
        assert staged.rows == sum(file.rows for file in group), (staged, group)
        lake.replace("compact", group, [_put(lake, group, staged)])
        merged += len(group)
    if merged:
        facts = {"event": "report_lake_compacted", "lake": str(lake.path), "files": merged}
        logger.info("small files of the lake merged", extra=facts)
    return merged


def _put(lake: Lake, group: Sequence[LakeFile], staged: StagedFile) -> LakeFile:
    """Move a staged file to its place. Its number is the entry's, which no other file's name has."""
    begin, end = min(file.span[0] for file in group), max(file.span[1] for file in group)
    path = f"data/date={staged.date}/{begin:020}-{end:020}-c{lake.next_sequence():x}.parquet"
    path = lake.place.keep(staged.name, path)
    lake.place.settle([path])
    return LakeFile(
        path, staged.date, staged.rows, staged.size_bytes, staged.min_store_timestamp, staged.max_store_timestamp
    )


def expire(lakes: Sequence[Lake], *, days: float, size_bytes: int, now_ms: int | None = None) -> int:
    """Take out what is older than `days`, and of all lakes together the oldest beyond `size_bytes`; 0: no limit.

    Returns how many files went. It takes the lock of each lake that loses some.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    files = [(file, lake) for lake in lakes for file in lake.files()]
    files.sort(key=lambda pair: pair[0].max_store_timestamp)
    too_much = sum(file.size_bytes for file, _ in files) - size_bytes if size_bytes else 0
    gone: dict[Path, list[LakeFile]] = {}
    for file, lake in files:
        is_too_old = days and file.max_store_timestamp < now_ms - days * DAY_MS
        if not is_too_old and too_much <= 0:
            break
        too_much -= file.size_bytes
        gone.setdefault(lake.path, []).append(file)
    for lake in lakes:
        if lake.path in gone:
            with lake.writing():
                lake.replace("expire", gone[lake.path])
            facts = {"event": "report_lake_expired", "lake": str(lake.path), "files": len(gone[lake.path])}
            logger.info("old files of the lake taken out", extra=facts)
    return sum(map(len, gone.values()))


def keep_up(lakes: Sequence[Lake], run: Merge, *, days: float, size_bytes: int, until: float) -> None:
    """All of it. A lake that another run is writing is left to that one."""
    try:
        expire(lakes, days=days, size_bytes=size_bytes)
        for lake in lakes:
            with lake.writing():
                compact(lake, run, until=until)
                lake.remove_leftovers()
                lake.tidy()
    except LakeBusy as busy:
        logger.info("a lake is being written", extra={"event": "report_lake_busy", "why": str(busy)})
