"""Real child processes: started in order, restarted, called a crash loop, stopped in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from appliance.appliance_config import ROOT
from appliance.supervisor.child import ChildSpec
from appliance.supervisor.supervisor import StartFailed, Supervisor
from tests.conftest import time_limit

SERVICE = """
import json, signal, socket, sys, time
from appliance.supervisor.parent import end_with_parent
end_with_parent()
name, journal, port = sys.argv[1:4]
def note(what):
    with open(journal, "a") as file: file.write(f"{what} {name}\\n")
def stop(*_):
    note("stop"); sys.exit(0)
signal.signal(signal.SIGTERM, stop)
listener = socket.create_server(("127.0.0.1", int(port)))
note("start")
print("a line before it is ready", flush=True)
print("READY " + json.dumps({"role": "service", "listen": "127.0.0.1:%d" % listener.getsockname()[1]}), flush=True)
while True: time.sleep(60)
"""


def service(name: str, journal: Path, port: int = 0, **extra: object) -> ChildSpec:
    command = (sys.executable, "-c", SERVICE, name, str(journal), str(port))
    return ChildSpec(name=name, role="service", command=command, environment={"PYTHONPATH": str(ROOT)}, **extra)


def script(name: str, text: str, **extra: object) -> ChildSpec:
    return ChildSpec(name=name, role="service", command=(sys.executable, "-c", text), **extra)


@contextlib.asynccontextmanager
async def running(supervisor: Supervisor) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(supervisor.run())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, StartFailed):
            await task


async def until(condition, timeout_s: float = 30.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


async def test_processes_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    stages = [[service("first", journal)], [service("second", journal)]]
    supervisor = Supervisor(stages, logs_folder=tmp_path / "logs")
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), 10)
        assert [(p.name, p.state, p.restarts) for p in supervisor.snapshot()] == [
            ("first", "running", 0),
            ("second", "running", 0),
        ]
    assert journal.read_text().splitlines() == ["start first", "start second", "stop second", "stop first"]
    assert [(p.state, p.pid, p.exit_code) for p in supervisor.snapshot()] == [("stopped", None, 0)] * 2
    assert "a line before it is ready" in (tmp_path / "logs" / "first.log").read_text()


async def test_a_killed_process_serves_again_within_three_seconds(tmp_path: Path) -> None:
    supervisor = Supervisor([[service("worker", tmp_path / "journal")]], logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), 10)
        first_pid = supervisor.snapshot()[0].pid
        assert first_pid is not None
        os.kill(first_pid, signal.SIGKILL)
        started = time.monotonic()
        await until(lambda: supervisor.snapshot()[0].pid not in (None, first_pid))
        await until(lambda: supervisor.snapshot()[0].state == "running")
        assert time.monotonic() - started < time_limit(3)
        status = supervisor.snapshot()[0]
        assert (status.restarts, status.exit_code) == (1, -signal.SIGKILL)


async def test_a_process_that_does_not_come_up_at_the_start_ends_the_start_and_says_why(tmp_path: Path) -> None:
    broken = script("broken", "import sys; print('the port is on fire', flush=True); sys.exit(3)")
    supervisor = Supervisor([[service("good", tmp_path / "j")], [broken]], logs_folder=tmp_path)
    with pytest.raises(StartFailed) as caught:
        await asyncio.wait_for(supervisor.run(), 20)
    assert "exit code 3" in str(caught.value)
    assert "the port is on fire" in caught.value.log_tail
    assert [p.state for p in supervisor.snapshot()] == ["stopped", "stopped"]


async def test_a_process_that_is_silent_too_long_counts_as_not_started(tmp_path: Path) -> None:
    silent = script("silent", "import time; time.sleep(60)", ready_timeout_s=0.3)
    with pytest.raises(StartFailed, match=r"did not serve within 0\.3 s"):
        await asyncio.wait_for(Supervisor([[silent]], logs_folder=tmp_path).run(), 20)


async def test_a_crash_loop_is_said_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.supervisor.backoff.FIRST_DELAY_S", 0.01)
    flaky = script("flaky", "print('READY {}', flush=True)")
    supervisor = Supervisor([[flaky]], logs_folder=tmp_path)
    async with running(supervisor):
        await until(lambda: supervisor.snapshot()[0].state == "crash loop")
    assert any(getattr(record, "event", "") == "crash_loop" for record in caplog.records)


async def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    text = deaf + "; print('READY {}', flush=True); time.sleep(60)"
    stubborn = script("stubborn", text)
    supervisor = Supervisor([[stubborn]], logs_folder=tmp_path, stop_grace_s=0.2)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), 10)
    assert supervisor.snapshot()[0].exit_code == -signal.SIGKILL


async def test_a_job_runs_beside_the_services_and_is_not_started_again(tmp_path: Path) -> None:
    supervisor = Supervisor([[service("worker", tmp_path / "j")]], logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), 10)
        supervisor.add_job(script("job", "print('done so far')", is_service=False))
        supervisor.add_job(script("bad-job", "raise SystemExit(4)", is_service=False))
        await until(lambda: [p.state for p in supervisor.snapshot()] == ["running", "done", "failed"])
        assert supervisor.snapshot()[2].exit_code == 4
    assert [p.state for p in supervisor.snapshot()] == ["stopped", "done", "failed"]


def test_a_process_ends_with_its_parent_even_when_the_parent_is_killed(tmp_path: Path) -> None:
    parent_script = textwrap.dedent(f"""
        import asyncio, sys
        from pathlib import Path
        from appliance.supervisor.child import Child, ChildSpec
        async def main():
            command = (sys.executable, "-c", {SERVICE!r}, "orphan", {str(tmp_path / "journal")!r}, "0")
            child = Child(ChildSpec(name="orphan", role="service", command=command), Path({str(tmp_path / "log")!r}))
            await child.start()
            await child.wait_ready()
            print(child.pid, flush=True)
            await child.wait()
        asyncio.run(main())
    """)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", parent_script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not alive
    assert (tmp_path / "journal").read_text().splitlines() == ["start orphan", "stop orphan"]
