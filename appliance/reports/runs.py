"""The files of a report run: specification, progress, result. Standard library only, because the dashboard reads them.

    <reports>/runs/<run id>/spec.json       RunSpec: the request, from a fixed set of fields
                            progress.json   {"phase", "detail", "rows", "at"}: while it runs
                            status.json     RunStatus: how it ended; it exists when the run has ended
                            run.log         everything the process wrote to stderr
                            page.json       the result as a page shows it, bounded in size
                            REPORT.json, .csv, .parquet    the whole result
                            lock            held by the launcher (flock) from before the others are written

    pause, beside runs/           touched each second while runs should leave the machine to the brokers
    work/<name>/, beside runs/    temporary files of a Spark process; its owner holds the lock in it, and removes it

Every file is written atomically (to a temporary name, then renamed).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import time
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from appliance.reports.catalogue import REPORTS, TRAFFIC
from appliance.reports.errors import ReportError

INGEST = "ingest"  # only updates the lakes
RUNNABLE = (*REPORTS, INGEST)
RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")
RESULT_SUFFIXES = ("csv", "json", "parquet")
HOUR_MS = 3_600_000
DEFAULT_TIMEOUT_S = 900.0
LOOKS, LOOK_AGAIN_S = 20, 0.05
PAUSE_S = 3.0  # so long a pause holds after it was asked for: who asks may have died
WITH_RESULT = ("succeeded", "incomplete")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSpec:
    """One run. Times are store times in ms since 1970; `end_ms` is exclusive."""

    report: str
    data: str
    begin_ms: int
    end_ms: int
    topics: tuple[str, ...] = ()  # empty: all
    zone: str = "UTC"  # whose days and months are meant
    promises: Mapping[str, float] = field(default_factory=dict)  # seconds that a group may be behind; "": all others
    lake_days: float = 0  # what is older leaves the lakes; 0: nothing
    lake_bytes: int = 0  # of all lakes; beyond that the oldest goes; 0: no limit
    anew: tuple[str, ...] = ()  # brokers whose log is read from where it begins now
    lake: str = ""  # where the lakes are: a folder or a URI; empty: in the data folder
    master: str = "local[2]"
    driver_memory: str = "1g"
    priority: str = "low"
    cores: int = 0  # of this machine, that all of the run may use; 0: all
    java_home: str = ""
    timeout_s: float = DEFAULT_TIMEOUT_S
    conf: Mapping[str, str] = field(default_factory=dict)  # further Spark settings, for a cluster

    def __post_init__(self) -> None:
        if self.report not in RUNNABLE:
            raise ReportError(f"report {self.report!r} is unknown; there are: {', '.join(RUNNABLE)}")
        if self.zone not in zoneinfo.available_timezones():
            raise ReportError(f"time zone {self.zone!r} is unknown; write a name such as Europe/Berlin")
        if self.begin_ms >= self.end_ms:
            raise ReportError("the report's range is empty: its begin must lie before its end")
        if self.timeout_s <= 0:
            raise ReportError(f"timeout_s={self.timeout_s}: must be greater than 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """How a run ended. `state` is succeeded, incomplete, failed, timeout or cancelled; times are seconds since 1970.

    An incomplete run has a result, and `error` says what is missing from it.
    """

    state: str
    started_at: float
    finished_at: float
    exit_code: int | None
    rows: int = 0  # rows of the result
    ingested_rows: int = 0
    error: str = ""
    ingest: tuple[Mapping[str, Any], ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)  # session, ingest, report: where the time went

    @property
    def duration_s(self) -> float:
        return self.finished_at - self.started_at

    @property
    def has_result(self) -> bool:
        return self.state in WITH_RESULT


class RunFolder:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.log_path = path / "run.log"

    @classmethod
    def in_data(cls, data: Path, run_id: str) -> RunFolder:
        """The folder of a run. Raises ReportError for an invalid id: ids come from URLs, and become paths."""
        if not RUN_ID.fullmatch(run_id):
            raise ReportError(f"{run_id!r} is not a run id")
        return cls(data / "reports" / "runs" / run_id)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The launcher's: hold the run's lock while the block runs. Raises ReportError when there is such a run."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / "lock").open("a") as lock:
            for look in range(1, LOOKS + 1):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if look == LOOKS:
                        raise ReportError(f"{self.run_id} is running already") from None
                    time.sleep(LOOK_AGAIN_S)  # `is_running` holds it for a moment
            yield

    def is_running(self) -> bool:
        """Whether its launcher lives."""
        try:
            with (self.path / "lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def write_spec(self, spec: RunSpec) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "spec.json", asdict(spec))

    def spec(self) -> RunSpec:
        values = json.loads((self.path / "spec.json").read_bytes())
        return RunSpec(**(values | {"topics": tuple(values["topics"]), "anew": tuple(values.get("anew", ()))}))

    def write_progress(self, phase: str, detail: str = "", rows: int = 0) -> None:
        write_json(self.path / "progress.json", {"phase": phase, "detail": detail, "rows": rows, "at": time.time()})

    def progress(self) -> dict[str, Any] | None:
        return _read_json(self.path / "progress.json")

    def write_status(self, status: RunStatus) -> None:
        write_json(self.path / "status.json", asdict(status))

    def status(self) -> RunStatus | None:
        """None while the run has not ended."""
        values = _read_json(self.path / "status.json")
        if values is None:
            return None
        known = {item.name for item in fields(RunStatus)}
        return RunStatus(**{name: value for name, value in values.items() if name in known})

    def page(self) -> dict[str, Any] | None:
        return _read_json(self.path / "page.json")

    def result(self, suffix: str, report: str = TRAFFIC) -> Path:
        """Path of the result in one of RESULT_SUFFIXES; it exists once the run has succeeded."""
        if suffix not in RESULT_SUFFIXES:
            raise ReportError(f"there is no result as {suffix!r}; there are: {', '.join(RESULT_SUFFIXES)}")
        return self.path / f"{report}.{suffix}"


def runs_in(data: Path) -> list[RunFolder]:
    """All runs, oldest first."""
    folder = data / "reports" / "runs"
    if not folder.is_dir():
        return []
    return [RunFolder(path) for path in sorted(folder.iterdir()) if RUN_ID.fullmatch(path.name)]


def new_work_folder(data: Path) -> Path:
    """A folder for the temporary files of a Spark process."""
    folder = data / "reports" / "work" / new_run_id()
    folder.mkdir(parents=True)
    return folder


@contextlib.contextmanager
def lock_of_work(folder: Path) -> Iterator[None]:
    """Hold a work folder while the block runs."""
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove_work_of_the_dead(data: Path) -> None:
    """Delete the temporary files of Spark processes whose owner was killed; a living one deletes its own."""
    for folder in (data / "reports" / "work").glob("*"):
        with contextlib.suppress(FileNotFoundError), (folder / "lock").open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder, ignore_errors=True)


def new_run_id() -> str:
    """A unique name that sorts by time."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + "-" + secrets.token_hex(3)


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, ensure_ascii=False).encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write the file atomically: readers see the old content or the complete new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data)
    temporary.replace(path)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        value: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return value


def ask_for_pause(data: Path) -> None:
    """Have runs pause for PAUSE_S. Nothing where no run has been yet. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        (data / "reports" / "pause").touch()


def is_pause_asked(data: Path) -> bool:
    try:
        age_s = time.time() - (data / "reports" / "pause").stat().st_mtime
    except FileNotFoundError:
        return False
    return 0 <= age_s < PAUSE_S
