"""The guardian: whatever becomes of the web process, brokers serve on; when the guardian goes, everything goes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from appliance.own_files import ROOT
from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance
from tests.conftest import time_limit
from tests.waiting import WITHIN_S, wait_until

HANG_S = 2.0
HOGS = 6  # processes that want a core, for two
PATIENCE_S = 90.0  # for what must come
ADOPTED = "event=process_adopted"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "gantry.toml"
    path.write_text(f"web_hang_s = {HANG_S}\nworker_hang_s = {HANG_S}\n")
    return path


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory, settings: Path) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path_factory.mktemp("guardian") / "data", "--config", str(settings)) as appliance:
        yield appliance


class Sending:
    """`with Sending(namesrv) as load:` sends without a break from a thread; `failures` is what went wrong."""

    def __init__(self, namesrv: str) -> None:
        self.sent = 0
        self.failures: list[str] = []
        self._namesrv = namesrv
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> Sending:
        self._thread.start()
        wait_until(lambda: self.sent > 100 or bool(self.failures))
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _send(self) -> None:
        with SyncProducer(self._namesrv, delivery_timeout_s=WITHIN_S) as producer:  # a starved broker asks to wait
            while not self._enough.is_set():
                try:
                    status = producer.send(Message("guarded", b"load")).status.name
                except Exception as exc:
                    status = repr(exc)
                self.sent += 1
                if status != "SEND_OK":
                    self.failures.append(status)


def page_answers(gantry: RunningAppliance) -> bool:
    try:
        with urllib.request.urlopen(f"http://{gantry.http}/login", timeout=5) as response:
            return bool(response.status == 200)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def pids(processes: list[psutil.Process]) -> list[int]:
    return sorted(process.pid for process in processes)


def log_of(gantry: RunningAppliance, name: str) -> str:
    return Path(gantry.data, "logs", name).read_text(encoding="utf-8")


def web_follows(gantry: RunningAppliance, earlier: psutil.Process) -> bool:
    with contextlib.suppress(IndexError):  # between two of them
        return gantry.web.pid != earlier.pid
    return False


def test_a_killed_web_process_costs_no_send_and_is_back_while_brokers_stay(gantry: RunningAppliance) -> None:
    web, workers = gantry.web, pids(gantry.workers())
    adopted = log_of(gantry, "gantry.log").count(ADOPTED)
    with Sending(gantry.namesrv) as load:
        web.kill()
        killed = time.monotonic()
        wait_until(lambda: web_follows(gantry, web))
        assert time.monotonic() - killed < time_limit(2)
        wait_until(lambda: page_answers(gantry))
        # Never more than cold starts take; one of ours was measured while the machine may have had less to do.
        assert time.monotonic() - killed < max(time_limit(2), 3 * gantry.started_s)
        sent = load.sent
        wait_until(lambda: load.sent > sent + 100)
    assert load.failures == []
    assert pids(gantry.workers()) == workers
    wait_until(lambda: "event=web_process_follows reason='was killed by SIGKILL'" in log_of(gantry, "gantry.log"))
    wait_until(lambda: log_of(gantry, "gantry.log").count(ADOPTED) > adopted + 2)
    assert log_of(gantry, "gantry.log").count(ADOPTED) == adopted + 3
    assert "reason='was killed by SIGKILL'" in log_of(gantry, "guardian.log")
    assert gantry.output.count("GANTRY READY") == 1


def test_a_web_process_that_hangs_is_killed_and_follows_too(gantry: RunningAppliance) -> None:
    wait_until(lambda: page_answers(gantry))
    web, workers = gantry.web, pids(gantry.workers())
    web.suspend()
    wait_until(lambda: web_follows(gantry, web))
    wait_until(lambda: page_answers(gantry))
    assert pids(gantry.workers()) == workers
    assert f"reason='did not answer for {HANG_S:g} s'" in log_of(gantry, "guardian.log")


def test_a_broker_that_is_killed_while_the_web_process_is_down_is_started_again(gantry: RunningAppliance) -> None:
    wait_until(lambda: page_answers(gantry))
    web, broker, namesrv = gantry.web, gantry.workers("broker")[0], pids(gantry.workers("namesrv"))
    web.suspend()  # so that it can't be the one
    broker.kill()
    web.kill()
    wait_until(lambda: [found for found in gantry.workers("broker") if found.pid != broker.pid])
    assert pids(gantry.workers("namesrv")) == namesrv
    with Sending(gantry.namesrv) as load:
        wait_until(lambda: load.sent > len(load.failures))


def test_a_machine_that_stands_still_or_has_no_core_to_give_is_no_reason_to_restart_anything(
    gantry: RunningAppliance,
) -> None:
    wait_until(lambda: page_answers(gantry))
    wait_until(lambda: gantry.workers("broker"))
    endings = log_of(gantry, "guardian.log").count("web_process_ended")
    guardian, web = psutil.Process(gantry.process.pid), gantry.web
    everything = [guardian, web, *gantry.workers()]
    for process in everything:
        process.suspend()
    time.sleep(2 * HANG_S)  # time has to pass: that is the fault
    guardian.resume()  # first, and alone for a moment: it looks at the others before they can speak
    # its first look at the others has to come before they are resumed
    time.sleep(HANG_S / 4)
    for process in everything:
        process.resume()
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        time.sleep(2 * HANG_S)  # long enough to call a process hung that gets no core
        wait_until(lambda: page_answers(gantry))
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
    assert pids([guardian, gantry.web, *gantry.workers()]) == pids(everything)
    assert log_of(gantry, "guardian.log").count("web_process_ended") == endings


def test_a_killed_guardian_leaves_nothing_behind(tmp_path: Path) -> None:
    with RunningAppliance(tmp_path / "data", "--brokers", "2") as gantry:
        everything = psutil.Process(gantry.process.pid).children(recursive=True)
        assert len(everything) == 5
        gantry.stop(signal.SIGKILL)
        _, alive = psutil.wait_procs(everything, timeout=PATIENCE_S)
        assert not alive
    assert not list((tmp_path / "data" / "brokers").glob("*/store/abort"))  # they were closed, not killed


def test_a_stop_is_orderly_even_when_the_web_process_hangs(tmp_path: Path, settings: Path) -> None:
    with RunningAppliance(tmp_path / "data", "--config", str(settings)) as gantry:
        everything = psutil.Process(gantry.process.pid).children(recursive=True)
        gantry.web.suspend()
        assert gantry.stop() == 0
        _, alive = psutil.wait_procs(everything, timeout=PATIENCE_S)
        assert not alive
        ended = [line for line in log_of(gantry, "guardian.log").splitlines() if "event=process_ended" in line]
    order = [next(at for at, line in enumerate(ended) if f"child={name}" in line) for name in ("broker-a", "namesrv")]
    assert order == sorted(order)
    assert all(line.endswith("exit_code=0") for line in ended)


GUARD = """
import asyncio, logging, sys
from appliance.supervisor.guardian import Guardian, become_subreaper
logging.basicConfig(level="DEBUG")
become_subreaper()
async def guard():
    return await Guardian(stop_grace_s=1.0, web_hang_s=90.0, command=(sys.executable, "-c", sys.argv[1])).run()
sys.exit(asyncio.run(guard()))
"""


def guard(web: str) -> subprocess.CompletedProcess[str]:
    """A guardian whose web process is this program."""
    command = [sys.executable, "-c", GUARD, textwrap.dedent(web)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_orphans_are_reaped_and_do_not_outlive_the_guardian(tmp_path: Path) -> None:
    """As process 1 of a container it is nobody else's task."""
    journal = tmp_path / "orphans"
    result = guard(f"""
        import json, os, signal, socket, subprocess, sys, time
        link = socket.socket(fileno=int(os.environ["GANTRY_GUARDIAN_FD"]))
        for script in ("pass", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"):
            # its parent ends at once; the file says which number it has
            subprocess.run(["sh", "-c", 'python="$0"; "$python" -c "$1" & echo $! >>"$2"', sys.executable, script,
                {str(journal)!r}], check=True)
        brief, deaf = (int(line) for line in open({str(journal)!r}))
        while os.path.exists(f"/proc/{{brief}}"):  # a zombie would stay
            time.sleep(0.01)
        assert int(open(f"/proc/{{deaf}}/stat").read().split()[3]) == os.getppid()
        link.sendall(json.dumps({{"do": "finish", "code": 7}}).encode() + b"\\n")
    """)
    assert result.returncode == 7, result.stderr
    deaf = int(journal.read_text().split()[1])
    assert result.stderr.count("orphan reaped") >= 2 and not psutil.pid_exists(deaf)


def test_a_web_process_that_never_comes_up_ends_the_start() -> None:
    result = guard("raise SystemExit(3)")
    assert result.returncode == 1
    assert "the web process ended with exit code 3" in result.stderr
    assert "the web process does not start" in result.stderr


def test_what_nobody_understands_ends_the_web_process_and_not_the_guardian() -> None:
    result = guard("""
        import os, socket, time
        socket.socket(fileno=int(os.environ["GANTRY_GUARDIAN_FD"])).sendall(b"no message\\n")
        time.sleep(600)
    """)
    assert result.returncode == 1
    assert "sent a malformed message" in result.stderr
