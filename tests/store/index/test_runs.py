"""Entries written by the run make the same file as entries written one by one."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest

from store.index.file import RUN_ENTRIES, Entry, IndexFile

START_MS = 1_700_000_000_000


def entries(rnd: random.Random, count: int) -> list[Entry]:
    """Messages in the log's order, some with two keys, some with equal keys; the clock is set back at times."""
    made: list[Entry] = []
    position, time_ms = 0, START_MS
    while len(made) < count:
        position += rnd.randrange(100, 1000)
        time_ms += rnd.choice((0, 0, 1, 700, 90_000, -40_000))
        for _ in range(rnd.choice((1, 1, 2))):
            made.append((rnd.choice((rnd.randrange(1 << 31), rnd.randrange(50))), position, time_ms))
    return made


@pytest.mark.parametrize("slots", [7, 500, 100_000])
@pytest.mark.parametrize("room", [1000, 5 * RUN_ENTRIES + 3])
def test_runs_and_single_entries_make_the_same_file(tmp_path: Path, slots: int, room: int) -> None:
    for seed in range(5):
        rnd = random.Random(seed)
        wanted = entries(rnd, 7 * RUN_ENTRIES + 10)
        by_run, one_by_one = (IndexFile(tmp_path / f"{name}{seed}", slots, room) for name in ("run", "one"))
        done = 0
        for part in (1, RUN_ENTRIES + 5, 4 * RUN_ENTRIES, len(wanted)):
            done = by_run.put_many(wanted[:part], done)
        done_singly = 0
        while done_singly < len(wanted) and one_by_one.put_many(wanted[done_singly : done_singly + 1]):
            done_singly += 1
        assert done == done_singly
        assert (by_run.count, by_run.used_slots) == (one_by_one.count, one_by_one.used_slots)
        for key_hash in {entry[0] for entry in wanted}:
            found: tuple[list[int], list[int]] = ([], [])
            for file, offsets in zip((by_run, one_by_one), found, strict=True):
                deque(file.search(key_hash, offsets, 1000, 0, 1 << 62))
            assert found[0] == found[1]
        for file in (by_run, one_by_one):
            file.sync()
            file.close()
        assert by_run.path.read_bytes() == one_by_one.path.read_bytes()
