"""What a run will take, by what the last ones took."""

from __future__ import annotations

from pathlib import Path

from appliance.reports.runs import RunFolder, RunStatus, new_run_id
from dashboard.reports.estimate import in_steps, steps_of


def ended(data: Path, **seconds: float) -> RunFolder:
    folder = RunFolder.in_data(data, new_run_id())
    folder.path.mkdir(parents=True)
    folder.write_status(RunStatus(state="succeeded", started_at=1.0, finished_at=9.0, exit_code=0, seconds=seconds))
    return folder


def test_each_step_has_the_median_of_the_runs_that_took_it(tmp_path: Path) -> None:
    runs = [
        ended(tmp_path, session=31.0, ingest=9.0, report=2.0),
        ended(tmp_path, ingest=3.0, report=1.0),
        ended(tmp_path, ingest=4.0, report=90.0),
        ended(tmp_path),
        RunFolder.in_data(tmp_path, new_run_id()),
    ]
    assert in_steps(steps_of(runs)) == (
        "The last runs on this machine took: starting Spark 31\u202fs, reading the logs 4\u202fs, "
        "computing the report 2\u202fs."
    )


def test_before_the_first_run_nothing_is_guessed(tmp_path: Path) -> None:
    assert in_steps(steps_of([])) == ""
    assert in_steps(steps_of([ended(tmp_path)])) == ""
