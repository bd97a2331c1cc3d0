"""Samples between the dashboard and the lake: appended by the minute, whole lines only for some days."""

from __future__ import annotations

import json
from pathlib import Path

from appliance.reports.samples.kinds import GROUPS, SLAVES
from appliance.reports.samples.lines import DAY_MS, MINUTE_MS, append, read
from tests.appliance.reports.samples.rows import group_sample, sample
from tests.appliance.reports.stores import NOON

BOTH: list[tuple[str, int | None]] = [("broker-a:1", 3), ("broker-a:2", None)]


def test_rows_come_back_in_order_over_the_ends_of_days(tmp_path: Path) -> None:
    minutes = [NOON, NOON + MINUTE_MS, NOON + DAY_MS]
    for at_ms in minutes:
        append(tmp_path, SLAVES, [sample(at_ms), sample(at_ms, "broker-a:2", None)])
    assert read(tmp_path, SLAVES, 0) == [sample(at, name, known) for at in minutes for name, known in BOTH]
    assert [each.at_ms for each in read(tmp_path, SLAVES, NOON + MINUTE_MS)] == [at for at in minutes[1:] for _ in BOTH]
    assert read(tmp_path, SLAVES, minutes[-1] + 1) == []


def test_a_line_that_a_crash_tore_is_left_out_and_the_next_one_is_whole(tmp_path: Path) -> None:
    append(tmp_path, SLAVES, [sample()])
    [path] = (tmp_path / "dashboard" / "samples").iterdir()
    path.write_bytes(path.read_bytes() + path.read_bytes()[:-20])
    append(tmp_path, SLAVES, [sample(NOON + MINUTE_MS)])
    assert read(tmp_path, SLAVES, 0) == [sample(), sample(NOON + MINUTE_MS)]


def test_lines_of_an_older_version_are_read_without_what_rows_have_no_more(tmp_path: Path) -> None:
    append(tmp_path, GROUPS, [group_sample()])
    [path] = (tmp_path / "dashboard" / "samples").iterdir()
    old = json.loads(path.read_bytes()) | {"in_rate": 5.0, "out_rate": 4.0}
    rest = {name: value for name, value in old.items() if name not in ("stored", "consumed", "counted_minutes")}
    path.write_text(json.dumps(rest) + "\n[1]\n")
    assert read(tmp_path, GROUPS, 0) == [group_sample(stored=None, consumed=None, counted_minutes=None)]


def test_days_that_are_too_old_go(tmp_path: Path) -> None:
    for day in (0, 1, SLAVES.kept_days, SLAVES.kept_days + 1):
        append(tmp_path, SLAVES, [sample(NOON + day * DAY_MS)])
    assert [each.at_ms for each in read(tmp_path, SLAVES, 0)] == [
        NOON + day * DAY_MS for day in (1, SLAVES.kept_days, SLAVES.kept_days + 1)
    ]


def test_each_kind_has_files_of_its_own_and_its_own_age(tmp_path: Path) -> None:
    for day in (0, GROUPS.kept_days + 1):
        append(tmp_path, SLAVES, [sample(NOON + day * DAY_MS)])
        append(tmp_path, GROUPS, [group_sample(NOON + day * DAY_MS)])
    assert len(read(tmp_path, SLAVES, 0)) == 2
    assert read(tmp_path, GROUPS, 0) == [group_sample(NOON + (GROUPS.kept_days + 1) * DAY_MS)]
