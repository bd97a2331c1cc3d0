"""Runs over a lake that are killed: `python -m tests.appliance.reports.killing FOLDER ADDRESS OPTIONS`.

A process of its own, which never calls Delta's library itself: that can't be forked once it was called. For each point
a child reads the log and tidies the lake, and is killed there; another child looks at what is left, goes on, and looks
again. Says how many points there were, and how many different states were found, as JSON.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from appliance.reports.lake import table, upkeep, writer
from appliance.reports.lake.broker_lake import Lake
from appliance.reports.lake.place import Place
from appliance.reports.runner import ingest
from appliance.settings.lake_place import StoreAddress
from tests.appliance.reports.lakes import lake_in, offsets_in
from tests.appliance.reports.stores import HOUR_MS, NOON, Record, write_log

NO_SPARK: Any = None
RANGE_BYTES = 1 << 14
LIMITS = ingest.IngestLimits(range_bytes=RANGE_BYTES, range_bytes_min=RANGE_BYTES)
RECORDS = [Record(body=bytes(700), stored_at=NOON + index * HOUR_MS // 3) for index in range(50)]
LATER_MS = NOON + 100 * 24 * HOUR_MS


def have_tasks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a worker of Spark would do is done here, and every second range is committed."""
    monkeypatch.setattr(ingest, "run_on_workers", lambda spark, function, values, **_: map(function, values))
    monkeypatch.setattr(writer, "COMMIT_BYTES", 2 * RANGE_BYTES)


def run(log: Path, lake: Lake) -> None:
    """What a run does with a lake."""
    ingest.ingest(NO_SPARK, [log], lake, limits=LIMITS)
    upkeep.keep_up([lake.table], days=0, size_bytes=0, until=float("inf"))


def run_in_steps(log: Path, lake: Lake, step: Callable[[], None]) -> None:
    """A step is before and after each file, each commit and checkpoint, and before each sync and deletion."""
    from deltalake import DeltaTable
    from deltalake.table import TableOptimizer

    def stepped(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            step()
            result = real(*arguments, **named)
            step()
            return result

        setattr(owner, name, call)

    for name in ("create_write_transaction", "create_checkpoint", "vacuum"):
        stepped(DeltaTable, name)
    stepped(TableOptimizer, "compact")
    stepped(pq, "write_table")
    stepped(os, "fsync")
    run(log, lake)


def in_a_child(work: Callable[[], Any], folder: Path) -> Any:
    """What it returns; None when it was killed. A failure of it fails here."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        try:
            answer.write_text(json.dumps({"result": work()}))
        except BaseException as failure:
            traceback.print_exc()
            answer.write_text(json.dumps({"failure": repr(failure)}))
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    said = json.loads(answer.read_text()) if answer.exists() else {}
    assert "failure" not in said, said
    return said.get("result")


def killed(log: Path, lake: Lake, point: int) -> bool:
    calls = itertools.count()

    def step() -> None:
        if next(calls) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    run_in_steps(log, lake, step)
    return True


def gone_on(log: Path, lake: Lake) -> dict[str, Any]:
    """What is there before and after the next run."""
    before = {"offsets": offsets_in(lake), "position": lake.position()}
    run(log, lake)
    with lake.table.writing():
        upkeep.clear(lake.table, hours=0)
        left = upkeep.clear(lake.table, hours=0)
    assert left == 0
    rows = sum(file.rows for file in lake.table.files())
    return {"before": before, "after": {"offsets": offsets_in(lake), "position": lake.position()}, "rows": rows}


def main(folder: Path, address: str, options: str) -> None:
    have_tasks_here(patch := pytest.MonkeyPatch())
    for owner, name, value in ((upkeep, "FILES_MIN", 2), (table, "CHECKPOINT_EACH", 2)):
        patch.setattr(owner, name, value)
    patch.setattr(upkeep, "_now_ms", lambda: LATER_MS)
    *offsets, end = write_log(folder / "commitlog", RECORDS, file_bytes=1 << 15)
    seen = set()
    for point in itertools.count():
        lake = lake_in(folder / str(point))
        if address:
            lake.table.place = Place(StoreAddress(f"{address}/{point}", options))
        (folder / str(point)).mkdir()
        was_whole = in_a_child(functools.partial(killed, folder / "commitlog", lake, point), folder)
        found = in_a_child(functools.partial(gone_on, folder / "commitlog", lake), folder)
        before = found["before"]
        count = len(before["offsets"])
        assert before["offsets"] == offsets[:count], (point, before)
        assert (before["position"] or 0) == (offsets[count] if count < len(offsets) else end), (point, before)
        assert found["after"] == {"offsets": offsets, "position": end} and found["rows"] == len(offsets), (point, found)
        seen.add(count)
        if was_whole:
            print(json.dumps({"points": point, "states": sorted(seen)}))
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
