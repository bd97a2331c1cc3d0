"""Process facts: what the supervisor started, and what each process takes of CPU and memory (psutil).

These are the only facts that don't come from a broker over the wire. Without a supervisor (a dashboard for a remote
cluster) only this process is known.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

import psutil

from dashboard.language.sentences import gettext
from dashboard.language.told import told_in_words


class Supervisor(Protocol):
    """What we need of appliance.supervisor.Supervisor: name, role, pid, state, restarts, started_at, … a process."""

    def snapshot(self) -> list[Any]: ...


class Guardian(Protocol):
    """What we need of appliance.supervisor.GuardianLink: who the parent of all is, and earlier web processes."""

    guardian_pid: int
    web_starts: int
    endings: list[dict[str, Any]]


NOT_RUNNING = ("waiting", "starting", "restarting", "crash loop", "stopping", "stopped")
ENDING_TOLD_S = 3600.0  # a web process that was started again is nothing to look at any more


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """One process as seen at `at` (epoch seconds). cpu_ratio: 1.0 is one core; None means not known, `why` says why."""

    name: str
    role: str
    pid: int | None
    state: str
    restarts: int | None
    started_at: float | None
    address: str
    cpu_ratio: float | None
    rss_bytes: int | None
    at: float
    why: str | None = None
    note: str = ""  # what a person should know of its past
    is_suspended: bool = False  # by SIGSTOP, or by a debugger
    adopted: str = ""  # since when this web process looks after one that an earlier one started


_supervisor: Supervisor | None = None
_guardian: Guardian | None = None
_handles: dict[int, psutil.Process] = {}
_STARTED_AT = time.time()


def attach(supervisor: Supervisor, guardian: Guardian) -> None:
    """Hand supervisor and guardian over; `manage.py up` calls this once."""
    global _supervisor, _guardian
    _supervisor, _guardian = supervisor, guardian


def names_of(role: str) -> frozenset[str]:
    """The processes of a role that are to run here."""
    return frozenset(str(one.name) for one in (_supervisor.snapshot() if _supervisor else ()) if str(one.role) == role)


def not_running() -> list[Any]:
    """The supervisor's processes that are to run and do not; a job that ended is none of them."""
    return [one for one in (_supervisor.snapshot() if _supervisor else ()) if one.state in NOT_RUNNING]


def sample() -> list[ProcessFacts]:
    """This process first, then the supervisor's, in its order. Takes well under a millisecond a process."""
    now = time.time()
    statuses = _supervisor.snapshot() if _supervisor is not None else []
    facts = _own_facts(now)
    for status in statuses:
        started_at = _epoch(status.started_at)
        address = str(status.address or "")
        state = str(getattr(status.state, "value", status.state))
        found = _facts(str(status.name), str(status.role), status.pid, state, status.restarts, started_at, address, now)
        adopted_at = _epoch(status.adopted_at)
        facts.append(replace(found, adopted=_clock(adopted_at)) if adopted_at is not None else found)
    _forget_all_but({fact.pid for fact in facts if fact.pid is not None})
    return facts


def _own_facts(now: float) -> list[ProcessFacts]:
    """This process, and the guardian above it."""
    if _guardian is None:
        return [_facts("web", "web", os.getpid(), "running", 0, _STARTED_AT, "", now)]
    facts = _facts("web", "web", os.getpid(), "running", _guardian.web_starts - 1, _STARTED_AT, "", now)
    if _guardian.endings and now - (last := _guardian.endings[-1])["at"] < ENDING_TOLD_S:
        facts = replace(
            facts,
            note=gettext("the one before %(reason)s, at %(time)s")
            % {"reason": told_in_words(str(last["reason"])), "time": _clock(last["at"])},
        )
    above = _facts("gantry up", "guardian", _guardian.guardian_pid, "running", 0, _guardian_started_at(), "", now)
    return [above, facts]


def _guardian_started_at() -> float | None:
    handle = _handles.get(_guardian.guardian_pid) if _guardian is not None else None
    return handle.create_time() if handle is not None else None


def _facts(
    name: str,
    role: str,
    pid: int | None,
    state: str,
    restarts: int | None,
    started_at: float | None,
    address: str,
    now: float,
) -> ProcessFacts:
    if pid is None:
        return ProcessFacts(
            name, role, None, state, restarts, started_at, address, None, None, now, gettext("not running")
        )
    try:
        handle = _handles.get(pid)
        is_new = handle is None
        if handle is None:
            handle = _handles[pid] = psutil.Process(pid)
        with handle.oneshot():
            cpu_percent = handle.cpu_percent(None)  # since the last call; the first call has nothing to compare with
            rss_bytes = handle.memory_info().rss
            is_suspended = handle.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    except psutil.Error as exc:
        _handles.pop(pid, None)
        why = gettext("process %(pid)s: %(error)s") % {"pid": pid, "error": type(exc).__name__}
        return ProcessFacts(name, role, pid, state, restarts, started_at, address, None, None, now, why)
    cpu_ratio = None if is_new else cpu_percent / 100
    note = gettext("measured from the next second on") if is_new else None
    return ProcessFacts(
        name,
        role,
        pid,
        state,
        restarts,
        started_at,
        address,
        cpu_ratio,
        rss_bytes,
        now,
        note,
        is_suspended=is_suspended,
    )


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")


def _forget_all_but(pids: set[int]) -> None:
    for pid in [known for known in _handles if known not in pids]:
        del _handles[pid]


def _epoch(moment: Any) -> float | None:
    if moment is None:
        return None
    return float(moment.timestamp()) if hasattr(moment, "timestamp") else float(moment)
