"""The lake's tables of samples: each sampled minute once, however often runs come."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from appliance.reports.samples.kinds import BROKERS, GROUPS, SLAVES
from appliance.reports.samples.lines import DAY_MS, MINUTE_MS, append
from tests.appliance.reports.lakes import rows_of
from tests.appliance.reports.samples.rows import broker_sample, group_sample, sample
from tests.appliance.reports.stores import NOON

pytest.importorskip("pyarrow", reason="the report stack is not installed")


def samples_in(data: Path, name: str = "slaves") -> list[dict[str, Any]]:
    """As they were sampled."""
    from appliance.reports.lake.lakes import Lakes

    rows = rows_of(Lakes(data).of_samples(name))
    return sorted(
        ({"at_ms": round(row.pop("at").timestamp() * 1000), **row} for row in rows), key=lambda row: row["at_ms"]
    )


def copy(data: Path) -> int:
    from appliance.reports.lake.lakes import Lakes
    from appliance.reports.runner.sample_table import copy_samples

    return copy_samples(data, Lakes(data))


def test_each_minute_is_copied_once(tmp_path: Path) -> None:
    from appliance.reports.lake.lakes import Lakes

    assert copy(tmp_path) == 0
    assert not Lakes(tmp_path).of_samples("slaves").is_there, "without slaves there is no table"
    first = [sample(), sample(slave="broker-a:2", behind_messages=None)]
    append(tmp_path, SLAVES, first)
    assert (copy(tmp_path), copy(tmp_path)) == (2, 0)
    later = [sample(NOON + 5 * MINUTE_MS), sample(NOON + DAY_MS)]
    for row in later:
        append(tmp_path, SLAVES, [row])
    append(tmp_path, SLAVES, [sample(NOON)])  # a clock was set back
    assert copy(tmp_path) == 2
    assert samples_in(tmp_path) == [dataclasses.asdict(row) for row in first + later]
    assert len({file.date for file in Lakes(tmp_path).of_samples("slaves").files()}) == 2


def test_the_rows_of_every_kind_come_through_whole(tmp_path: Path) -> None:
    from appliance.reports.samples.schemas import SCHEMAS

    groups = [group_sample(), group_sample(group="mail", lag=None, behind_seconds=None, members=None, consumed=None)]
    brokers = [broker_sample(), broker_sample(broker="b", in_rate=None, out_rate=None, disk_ratio=None)]
    append(tmp_path, GROUPS, groups)
    append(tmp_path, BROKERS, brokers)
    assert copy(tmp_path) == 4
    assert samples_in(tmp_path, "groups") == [dataclasses.asdict(row) for row in groups]
    assert samples_in(tmp_path, "brokers") == [dataclasses.asdict(row) for row in brokers]
    for kind in (SLAVES, GROUPS, BROKERS):
        assert SCHEMAS[kind.name].names == ["at", *(field.name for field in dataclasses.fields(kind.row)[1:])]
