"""The lake's table of slaves: each sampled minute once, however often runs come."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from appliance.reports.slave_samples import DAY_MS, MINUTE_MS, append
from tests.appliance.reports.samples import sample
from tests.appliance.reports.stores import NOON

pytest.importorskip("pyarrow", reason="the report stack is not installed")


def rows_of(data: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    from appliance.reports.runner.sample_table import slave_table

    table = slave_table(data)
    return [row for file in table.files() for row in pq.ParquetFile(table.path / file.path).read().to_pylist()]


def test_each_minute_is_copied_once(tmp_path: Path) -> None:
    from appliance.reports.runner.sample_table import copy_slave_samples, slave_table

    assert copy_slave_samples(tmp_path) == 0
    assert not slave_table(tmp_path).path.exists(), "without slaves there is no table"
    first = [sample(), sample(slave="broker-a:2", behind_messages=None)]
    append(tmp_path, first)
    assert (copy_slave_samples(tmp_path), copy_slave_samples(tmp_path)) == (2, 0)
    later = [sample(NOON + 5 * MINUTE_MS), sample(NOON + DAY_MS)]
    for row in later:
        append(tmp_path, [row])
    append(tmp_path, [sample(NOON)])  # a clock was set back
    assert copy_slave_samples(tmp_path) == 2
    assert rows_of(tmp_path) == [dataclasses.asdict(row) for row in first + later]
    assert len({file.date for file in slave_table(tmp_path).files()}) == 2
