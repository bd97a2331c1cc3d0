"""Runs reports in processes of their own, with a time limit; a run's exit code decides about success.

A launcher keeps its Spark process from one run to the next, until it is closed: the start is most of what a small run
costs. `launch` is for one run alone.
"""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from appliance.reports.errors import BashNotFound, JavaNotFound
from appliance.reports.java import find_java, need_bash
from appliance.reports.runs import RunFolder, RunSpec, RunStatus, new_work_folder, remove_work_of_the_dead
from appliance.reports.sessions.class_archive import ClassArchive
from appliance.reports.sessions.spark_process import SessionSettings, SparkProcess


class Cancelled(Exception):
    """The launcher got SIGTERM or SIGINT."""


def launch(folder: RunFolder, spec: RunSpec) -> RunStatus:
    """Run the report, wait for its end, write and return its status. A failed run raises nothing."""
    with contextlib.closing(Launcher(Path(spec.data))) as launcher:
        return launcher.launch(folder, spec)


class Launcher:
    """Owns at most one Spark process. `is_kept`: whether it will run more than one report."""

    def __init__(self, data: Path, *, is_kept: bool = False) -> None:
        self._data = data
        self._is_kept = is_kept
        self._process: SparkProcess | None = None
        self._archive: ClassArchive | None = None
        self._java_home = ""
        remove_work_of_the_dead(data)

    def launch(self, folder: RunFolder, spec: RunSpec) -> RunStatus:
        """Run the report, wait for its end, write and return its status. A failed run raises nothing."""
        with folder.held():
            return self._launch(folder, spec)

    def close(self, *, at_once: bool = False) -> None:
        """End the Spark process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.close(at_once=at_once)
            if self._archive is not None:
                self._archive.keep()

    def _launch(self, folder: RunFolder, spec: RunSpec) -> RunStatus:
        folder.write_spec(spec)
        folder.write_progress("starting", "Looking for Java")
        started_at = time.time()
        state, exit_code = "cancelled", None
        try:
            with stop_signals_raise():
                exit_code = self._process_for(spec).run(folder, spec.timeout_s)
            state = "timeout" if exit_code is None else "failed" if exit_code else "succeeded"
        except (BashNotFound, JavaNotFound) as failure:
            return _ended(folder, RunStatus(
                state="failed", started_at=started_at, finished_at=time.time(), exit_code=None, error=str(failure)
            ))  # fmt: skip
        except Cancelled:
            self.close()
        if state == "timeout" or not self._is_kept:
            self.close()
        outcome = _outcome(folder)
        if state == "succeeded" and outcome.get("missing"):
            state = "incomplete"
        return _ended(
            folder,
            RunStatus(
                state=state,
                started_at=started_at,
                finished_at=time.time(),
                exit_code=exit_code,
                rows=outcome.get("rows", 0),
                ingested_rows=sum(item["rows"] for item in outcome.get("ingest", ())),
                ingest=tuple(outcome.get("ingest", ())),
                seconds=outcome.get("seconds", {}),
                error=_error(state, exit_code, spec, outcome),
            ),
        )

    def _process_for(self, spec: RunSpec) -> SparkProcess:
        """The process that is there if it suits the run, else a new one. Raises BashNotFound, JavaNotFound."""
        wanted = (spec.master, spec.driver_memory, dict(spec.conf), spec.java_home, spec.priority, spec.cores)
        if self._process is not None:
            settings = self._process.settings
            given = (settings.priority, settings.cores)
            has = (settings.master, settings.driver_memory, dict(settings.conf), self._java_home, *given)
            if self._process.is_usable and has == wanted:
                return self._process
            self.close()
        reports = self._data / "reports"
        need_bash()
        java = find_java(reports / "jre", setting=spec.java_home or None)
        self._java_home = spec.java_home
        self._archive = ClassArchive(reports / "jvm", java)
        settings = SessionSettings(
            master=spec.master,
            driver_memory=spec.driver_memory,
            conf=spec.conf,
            priority=spec.priority,
            cores=spec.cores,
            java_options=self._archive.options(may_write=self._is_kept),
        )
        self._process = SparkProcess(new_work_folder(self._data), settings, java, self._archive)
        return self._process


@contextlib.contextmanager
def stop_signals_raise() -> Iterator[None]:
    """While inside, SIGTERM and SIGINT raise Cancelled, so that the run's group is killed before this process ends."""

    def stop(signum: int, frame: object) -> None:
        raise Cancelled

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _outcome(folder: RunFolder) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads((folder.path / "outcome.json").read_bytes())
    except FileNotFoundError:
        return {}
    return value


def _error(state: str, exit_code: int | None, spec: RunSpec, outcome: Mapping[str, Any]) -> str:
    if state == "succeeded":
        return ""
    if state == "incomplete":
        return "; ".join(outcome["missing"])
    if state == "timeout":
        return f"the run took longer than {spec.timeout_s:g} s and was killed; give it more time or a shorter range"
    if state == "cancelled":
        return "the run was stopped before it ended"
    return str(outcome.get("error") or f"the process ended with exit code {exit_code}; see the end of run.log")


def _ended(folder: RunFolder, status: RunStatus) -> RunStatus:
    folder.write_status(status)
    return status
