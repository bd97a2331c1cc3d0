"""What goes to the executors of a cluster is all that a task needs, beside numpy and pyarrow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from appliance.reports.session import pack_code
from tests.appliance.reports.stores import Record, write_log


def test_a_task_runs_from_what_is_shipped_without_the_checkout(tmp_path: Path) -> None:
    log = tmp_path / "commitlog"
    *_, end = write_log(log, [Record()] * 7)
    (tmp_path / "lake" / "_staging").mkdir(parents=True)
    code = f"""
import sys
sys.path[:0] = [{str(pack_code(tmp_path))!r}]
from pathlib import Path
from appliance.reports import range_reader
from appliance.reports.lake_files import FolderFiles
from appliance.reports.commit_log_files import CommitLogFiles
from appliance.reports.log_ranges import ranges_of
assert ".zip" in range_reader.__file__
(pieces,) = ranges_of(CommitLogFiles([Path({str(log)!r})]).files(), 0, {end}, range_bytes=1 << 20)
(stretch,) = range_reader.copy_range(pieces, FolderFiles(Path({str(tmp_path / "lake")!r}))).stretches
print(sum(file.rows for file in stretch.files), "pyspark" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "7 False\n", done.stderr
