"""Process facts: the guardian above, what followed what, and since when somebody else's workers are ours."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from appliance.supervisor.supervisor import ProcessStatus
from dashboard.status import processes
from dashboard.status.check import Level
from dashboard.status.process_checks import process_problems


class Attached:
    """Supervisor and guardian in one, as far as the facts ask for them."""

    guardian_pid = os.getppid()
    web_starts = 3

    def __init__(self, ended_at: float) -> None:
        self.endings = [{"at": ended_at, "reason": "was killed by SIGKILL", "lived_s": 7.0}]

    def snapshot(self) -> list[ProcessStatus]:
        started, adopted = time.time() - 3600, time.time() - 60
        return [ProcessStatus("broker-a", "broker", os.getpid(), "running", 1, started, None, "127.0.0.1:1", adopted)]


@pytest.fixture
def attach(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(processes, "_supervisor", None)
    monkeypatch.setattr(processes, "_guardian", None)
    yield


@pytest.mark.usefixtures("attach")
@pytest.mark.parametrize(
    ("state", "names"), [("running", []), ("done", []), ("crash loop", ["a"]), ("starting", ["a"])]
)
def test_what_is_to_run_and_does_not_is_named(monkeypatch: pytest.MonkeyPatch, state: str, names: list[str]) -> None:
    attached = Attached(time.time())
    status = ProcessStatus("a", "broker", None, state, 0, None, None, "127.0.0.1:1", None)
    monkeypatch.setattr(attached, "snapshot", lambda: [status], raising=False)
    processes.attach(attached, attached)
    assert [one.name for one in processes.not_running()] == names


@pytest.mark.usefixtures("attach")
def test_a_web_process_that_follows_says_what_it_follows_and_what_it_adopted() -> None:
    attached = Attached(time.time() - 10)
    processes.attach(attached, attached)
    guardian, web, broker = processes.sample()
    assert (guardian.name, guardian.role, guardian.pid) == ("gantry up", "guardian", os.getppid())
    assert (web.pid, web.restarts) == (os.getpid(), 2)
    assert "was killed by SIGKILL" in web.note
    assert broker.restarts == 1 and broker.adopted.endswith(" UTC")
    (problem,) = process_problems(web)
    assert problem.level is Level.WARN and "was killed by SIGKILL" in problem.evidence
    assert not process_problems(broker)


@pytest.mark.usefixtures("attach")
def test_what_is_long_over_is_no_problem_any_more() -> None:
    attached = Attached(time.time() - 2 * processes.ENDING_TOLD_S)
    processes.attach(attached, attached)
    web = processes.sample()[1]
    assert (web.restarts, web.note) == (2, "")
    assert not process_problems(web)
