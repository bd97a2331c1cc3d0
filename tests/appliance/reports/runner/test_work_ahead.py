"""Whether a session will have much to count, told from the lake's log and names of files before it starts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from appliance.reports.lake.lakes import Lakes
from appliance.reports.lake.place import NewFile
from appliance.reports.runner.broker_folders import brokers_in
from appliance.reports.runner.work_ahead import BYTES_A_ROW, ROWS_LARGE, is_large

FILE_BYTES = 1 << 30


@pytest.mark.parametrize(
    ("rows", "files", "read", "expected"),
    [
        (0, 0, 0, False),
        (ROWS_LARGE - 1, 1, 0, False),
        (ROWS_LARGE, 1, 0, True),
        (1000, 2, 0, False),  # the last file, a gigabyte of nothing so far
        (0, 2 + ROWS_LARGE * BYTES_A_ROW // FILE_BYTES, 0, True),
        (
            1000,
            2 + ROWS_LARGE * BYTES_A_ROW // FILE_BYTES,
            ROWS_LARGE * BYTES_A_ROW,
            False,
        ),  # it is in the lake already
    ],
)
def test_rows_of_the_lake_and_unread_files_count(
    tmp_path: Path, rows: int, files: int, read: int, expected: bool
) -> None:
    home = tmp_path / "brokers" / "broker-a"
    (home / "store" / "commitlog").mkdir(parents=True)
    (home / "broker.properties").write_text("brokerName=broker-a\n")
    for number in range(files):
        with (home / "store" / "commitlog" / f"{number * FILE_BYTES:020}").open("wb") as file:
            file.truncate(FILE_BYTES)
    lakes = Lakes(tmp_path, "")
    if rows or read:
        lake = lakes.of_broker("broker-a")
        stored = {"store_timestamp": datetime(2026, 11, 21, tzinfo=UTC)}
        with lake.table.writing():
            (tmp_path / "reports" / "delta" / "messages" / "date=2026-11-21").mkdir()
            lake.commit(0, read, [NewFile("date=2026-11-21/a.parquet", "2026-11-21", rows, 1, stored, stored)], None)
    assert is_large(brokers_in(tmp_path), lakes) is expected
