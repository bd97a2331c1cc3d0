"""Real child processes: started in order, restarted, called a crash loop, stopped in reverse."""

from __future__ import annotations

import asyncio
import contextlib
import errno
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

from appliance.own_files import ROOT
from appliance.process.process_identity import start_ticks
from appliance.supervisor.child import ChildSpec
from appliance.supervisor.supervisor import StartFailed, Supervisor
from tests.appliance.supervisor.guarded import Guarded
from tests.conftest import time_limit
from tests.waiting import WITHIN_S, until

SERVICE = """
import json, signal, socket, sys, time
from appliance.process.parent_death import end_with_parent
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


@contextlib.asynccontextmanager
async def worker(folder: Path, guarded: Guarded, **extra: object) -> AsyncIterator[tuple[Supervisor, int]]:
    """A supervisor of one process, which serves, and its pid."""
    supervisor = Supervisor([[service("worker", folder / "journal", **extra)]], guarded.link, logs_folder=folder)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        pid = supervisor.snapshot()[0].pid
        assert pid is not None
        yield supervisor, pid


async def test_processes_start_in_order_and_stop_in_reverse(tmp_path: Path, guarded: Guarded) -> None:
    journal = tmp_path / "journal"
    stages = [[service("first", journal)], [service("second", journal)]]
    supervisor = Supervisor(stages, guarded.link, logs_folder=tmp_path / "logs")
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        assert [(p.name, p.state, p.restarts) for p in supervisor.snapshot()] == [
            ("first", "running", 0),
            ("second", "running", 0),
        ]
    assert journal.read_text().splitlines() == ["start first", "start second", "stop second", "stop first"]
    assert [(p.state, p.pid, p.exit_code) for p in supervisor.snapshot()] == [("stopped", None, 0)] * 2
    assert "a line before it is ready" in (tmp_path / "logs" / "first.log").read_text()


async def test_a_killed_process_serves_again_within_three_seconds(tmp_path: Path, guarded: Guarded) -> None:
    async with worker(tmp_path, guarded) as (supervisor, first_pid):
        os.kill(first_pid, signal.SIGKILL)
        started = time.monotonic()
        await until(lambda: supervisor.snapshot()[0].pid not in (None, first_pid))
        await until(lambda: supervisor.snapshot()[0].state == "running")
        assert time.monotonic() - started < time_limit(3)
        status = supervisor.snapshot()[0]
        assert (status.restarts, status.exit_code) == (1, -signal.SIGKILL)


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_the_death_of_a_process_is_told_by_what_tells_it_from_the_next_one(
    tmp_path: Path, guarded: Guarded, is_guarded: bool
) -> None:
    """Without a guardian none is told: an end that nobody has reaped may be another process's."""
    deaths = list[tuple[int, int | None]]()

    async def died(pid: int, started_ticks: int | None) -> None:
        deaths.append((pid, started_ticks))

    async with worker(tmp_path, guarded, on_death=died) as (supervisor, pid):
        expected = [(pid, start_ticks(pid))] if is_guarded else []
        if not is_guarded:
            guarded.hang_up()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: bool(deaths) if is_guarded else supervisor.snapshot()[0].state != "running")
        if is_guarded:
            await until(lambda: supervisor.snapshot()[0].pid not in (None, pid))
    assert deaths == expected  # one that is stopped by the supervisor gives its role up itself


async def test_a_process_that_does_not_come_up_at_the_start_ends_the_start_and_says_why(
    tmp_path: Path, guarded: Guarded
) -> None:
    broken = script("broken", "import sys; print('the port is on fire', flush=True); sys.exit(3)")
    supervisor = Supervisor([[service("good", tmp_path / "j")], [broken]], guarded.link, logs_folder=tmp_path)
    with pytest.raises(StartFailed) as caught:
        await asyncio.wait_for(supervisor.run(), WITHIN_S)
    assert "exit code 3" in str(caught.value)
    assert "the port is on fire" in caught.value.log_tail
    assert [p.state for p in supervisor.snapshot()] == ["stopped", "stopped"]


async def test_a_process_that_is_silent_too_long_counts_as_not_started(tmp_path: Path, guarded: Guarded) -> None:
    silent = script("silent", "import time; time.sleep(60)", ready_timeout_s=0.3)
    with pytest.raises(StartFailed, match=r"did not serve within 0\.3 s"):
        await asyncio.wait_for(Supervisor([[silent]], guarded.link, logs_folder=tmp_path).run(), WITHIN_S)


async def test_a_crash_loop_is_said_aloud(
    tmp_path: Path, guarded: Guarded, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.supervisor.backoff.FIRST_DELAY_S", 0.01)
    flaky = script("flaky", "print('READY {}', flush=True)")
    supervisor = Supervisor([[flaky]], guarded.link, logs_folder=tmp_path)
    async with running(supervisor):
        await until(lambda: supervisor.snapshot()[0].state == "crash loop")
    assert any(getattr(record, "event", "") == "crash_loop" for record in caplog.records)


async def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path, guarded: Guarded) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    text = deaf + "; print('READY {}', flush=True); time.sleep(60)"
    stubborn = script("stubborn", text)
    supervisor = Supervisor([[stubborn]], guarded.link, logs_folder=tmp_path, stop_grace_s=0.2)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
    assert supervisor.snapshot()[0].exit_code == -signal.SIGKILL


async def test_a_job_runs_beside_the_services_and_is_not_started_again(tmp_path: Path, guarded: Guarded) -> None:
    supervisor = Supervisor([[service("worker", tmp_path / "j")]], guarded.link, logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        supervisor.add_job(script("job", "print('done so far')", is_service=False))
        supervisor.add_job(script("bad-job", "raise SystemExit(4)", is_service=False))
        await until(lambda: [p.state for p in supervisor.snapshot()] == ["running", "done", "failed"])
        assert supervisor.snapshot()[2].exit_code == 4
    assert [p.state for p in supervisor.snapshot()] == ["stopped", "done", "failed"]


def test_a_process_ends_with_its_parent_even_when_the_parent_is_killed(tmp_path: Path) -> None:
    parent_script = textwrap.dedent(f"""
        import asyncio, sys
        from appliance.supervisor.spawner import Spawner
        async def main():
            events = asyncio.Queue()
            request = {{"name": "orphan", "stage": 0, "environment": {{}}, "log_path": {str(tmp_path / "log")!r}}}
            command = (sys.executable, "-c", {SERVICE!r}, "orphan", {str(tmp_path / "journal")!r}, "0")
            Spawner(events.put_nowait).spawn({{**request, "command": command}})
            while (event := await events.get())["event"] != "ready":
                pass
            print(event["pid"], flush=True)
            await asyncio.sleep(600)
        asyncio.run(main())
    """)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", parent_script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([child], timeout=WITHIN_S)
    assert not alive
    assert (tmp_path / "journal").read_text().splitlines() == ["start orphan", "stop orphan"]


async def test_who_follows_adopts_what_runs_and_starts_again_what_does_not(tmp_path: Path, guarded: Guarded) -> None:
    journal = tmp_path / "journal"
    stages = [[service("first", journal)], [service("second", journal)]]
    supervisor = Supervisor(stages, guarded.link, logs_folder=tmp_path)
    earlier = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
    before = {status.name: status for status in supervisor.snapshot()}
    await guarded.lose(earlier)
    os.kill(before["second"].pid, signal.SIGKILL)
    await until(lambda: guarded.spawner.facts()[1]["pid"] is None)

    follower = Supervisor(stages, await guarded.follow(), logs_folder=tmp_path)
    async with running(follower):
        await asyncio.wait_for(follower.wait_serving(), WITHIN_S)
        await until(lambda: [status.state for status in follower.snapshot()] == ["running", "running"])
        first, second = follower.snapshot()
        assert (first.pid, first.restarts, first.started_at) == (before["first"].pid, 0, before["first"].started_at)
        assert first.adopted_at is not None and first.address == before["first"].address
        assert second.pid not in (None, before["second"].pid)
        assert (second.restarts, second.adopted_at) == (1, None)
        os.kill(first.pid, signal.SIGKILL)  # an adopted one is looked after like any other
        await until(lambda: follower.snapshot()[0].restarts == 1 and follower.snapshot()[0].state == "running")
        assert follower.snapshot()[0].exit_code == -signal.SIGKILL
    assert [(p.state, p.exit_code) for p in follower.snapshot()] == [("stopped", 0)] * 2


async def test_what_a_process_prints_while_nobody_supervises_is_in_its_log(tmp_path: Path, guarded: Guarded) -> None:
    talks = script("talks", "import time\nprint('READY {}', flush=True)\nfor n in range(5000): print(f'line {n}')\n")
    supervisor = Supervisor([[talks]], guarded.link, logs_folder=tmp_path)
    earlier = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
    await guarded.lose(earlier)
    await until(lambda: guarded.spawner.facts()[0]["exit_code"] == 0)
    assert (tmp_path / "talks.log").read_text().splitlines()[1:5001] == [f"line {n}" for n in range(5000)]


async def test_a_worker_is_believed_when_we_have_no_file_left_to_ask_it(
    tmp_path: Path, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_file_left(host: str, port: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("asyncio.open_connection", no_file_left)
    supervisor = Supervisor([[service("worker", tmp_path / "j")]], guarded.link, logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        assert supervisor.snapshot()[0].restarts == 0


async def test_without_a_guardian_a_process_that_ignores_sigterm_is_killed_all_the_same(
    tmp_path: Path, guarded: Guarded
) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    stubborn = script("stubborn", deaf + "; print('READY {}', flush=True); time.sleep(600)")
    supervisor = Supervisor([[stubborn]], guarded.link, logs_folder=tmp_path, stop_grace_s=0.2)
    task = asyncio.create_task(supervisor.run())
    await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
    process = psutil.Process(supervisor.snapshot()[0].pid)
    guarded.hang_up()
    await asyncio.wait_for(guarded.link.gone.wait(), WITHIN_S)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, WITHIN_S)
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


async def test_a_held_process_ends_in_order_and_runs_again_when_it_is_released(
    tmp_path: Path, guarded: Guarded
) -> None:
    journal, mark = tmp_path / "journal", tmp_path / "held"
    spec = service("worker", journal, hold_file=mark)
    supervisor = Supervisor([[spec]], guarded.link, logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        mark.touch()
        await until(lambda: supervisor.snapshot()[0].state == "held")
        assert journal.read_text() == "start worker\nstop worker\n"
        mark.unlink()
        await until(lambda: supervisor.snapshot()[0].state == "running")
        assert supervisor.snapshot()[0].restarts == 0


async def test_a_start_does_not_wait_for_a_process_that_is_held(tmp_path: Path, guarded: Guarded) -> None:
    mark = tmp_path / "held"
    mark.touch()
    stages = [[service("held", tmp_path / "journal", hold_file=mark)], [service("next", tmp_path / "other")]]
    supervisor = Supervisor(stages, guarded.link, logs_folder=tmp_path)
    async with running(supervisor):
        await asyncio.wait_for(supervisor.wait_serving(), WITHIN_S)
        assert [one.state for one in supervisor.snapshot()] == ["held", "running"]
    assert not (tmp_path / "journal").exists()
