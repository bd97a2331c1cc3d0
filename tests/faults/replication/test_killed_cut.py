"""kill -9 in the middle of the cut of an old master's tail: the next start cuts again, and nothing of the tail is lost.

pytest tests/faults/replication/test_killed_cut.py --rounds 100
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from store import MessageStore
from store.inspect.dump import Selection, dump_records
from store.inspect.folder import StoreFolder
from tests.faults.kit.cutting import FILES
from tests.faults.kit.numbered import numbers, put
from tests.store.conftest import opened, small_config

ROUNDS = 3  # usual
KEPT, ALL = 20, 60


def cut(folder: Path, end: int, kill_at: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.faults.kit.cutting", str(folder), str(end), str(kill_at)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def tail_beside(folder: Path) -> set[int]:
    """The messages that lie in folders beside the store; one that was killed before its first file is none yet."""
    found: set[int] = set()
    for kept in folder.parent.glob(f"{folder.name}.cut-*"):
        if not any(kept.iterdir()):
            continue
        with StoreFolder(kept) as copy:
            rows = dump_records(copy, Selection(), with_body=True)
            found |= {int(str(row["body"])[:6]) for row in rows if "body" in row}
    return found


def test_a_cut_that_was_killed_is_done_again_by_the_next_start(
    tmp_path: Path, request: pytest.FixtureRequest, seed: int
) -> None:
    rounds = request.config.getoption("--rounds", default=None) or ROUNDS
    whole, dice = tmp_path / "whole" / "store", random.Random(seed if rounds > ROUNDS else ROUNDS)
    config = small_config(whole, **FILES)
    store = opened(config)
    for number in range(KEPT):
        put(store, number)
    end = store.max_physical_offset
    for number in range(KEPT, ALL):
        put(store, number)
    store.close()
    calls = 0
    for number in range(rounds + 1):
        root = tmp_path / str(number) / "store"
        shutil.copytree(whole, root)
        kill_at = dice.randrange(1, calls) if calls else 0
        ended = cut(root, end, kill_at)
        if not calls:
            calls = int(ended.stdout)  # how many there are, and the cut is done
        else:
            assert ended.returncode == -9, (kill_at, calls, ended.stderr)
        store = MessageStore(small_config(root, **FILES))
        store.load(cut_to=end)
        store.start()
        assert (store.max_physical_offset, numbers(store)) == (end, list(range(KEPT))), (kill_at, calls)
        put(store, KEPT)
        assert numbers(store) == list(range(KEPT + 1))
        store.close()
        assert tail_beside(root) == set(range(KEPT, ALL)), (kill_at, calls)
        shutil.rmtree(root.parent)
