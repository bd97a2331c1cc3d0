"""The whole appliance as a user starts it, for tests: `gantry up` as a process on free ports."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

from appliance.bench.disk_watermarks import DISK_MARKS
from appliance.bench.processes import free_ports
from appliance.cli.checks.ports import broker_ports
from appliance.settings.broker_processes import broker_processes
from tests.any_disk import SLOW_DISK

ROOT = Path(__file__).resolve().parent.parent
READY = re.compile(r"GANTRY READY (https?)=(\S+) namesrv=(\S+) (?:broker=(\S+) )?data=(.+)")
START_TIMEOUT_S = 540.0  # a first start of a fresh clone installs everything before it serves
START_CPU_S = 20.0  # of a start that installs and unpacks nothing: five times what it takes
STOP_TIMEOUT_S = 120.0  # it may take a worker the 30 s that its supervisor gives it
PROPERTIES = {**DISK_MARKS, **SLOW_DISK, "mappedFileSizeCommitLog": str(64 << 20)}


class RunningAppliance:
    """`with RunningAppliance(tmp_path / "data") as gantry:` runs it until the block ends.

    Its brokers' files have marks that no disk reaches, no limit on how slow it is, and commit-log files that need
    little room.
    """

    def __init__(
        self,
        data: Path,
        *options: str,
        command: tuple[str, ...] = (sys.executable, "-m", "appliance", "up"),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = data
        self._environment = dict(environment or {})
        self._brokers, slaves, replicas = (
            int(options[options.index(name) + 1]) if name in options else default
            for name, default in (("--brokers", 1), ("--slaves", 0), ("--replicas", 1))
        )
        self._slaves = max(slaves, replicas - 1)
        root = () if os.geteuid() else ("--allow-root",)
        self._command = [*command, "--data", str(data), "--no-install-reports", *root, *self._ports(), *options]
        self._lines: list[str] = []
        self._ended = threading.Event()
        self._ready = threading.Event()

    def _ports(self) -> list[str]:
        """Not 0, for which the appliance would choose: of those any connection may be given one before it listens."""
        above = [port for _, port in broker_ports(broker_processes(self._brokers, self._slaves, 0))]
        chosen = {"--http-port": free_ports(), "--namesrv-port": free_ports(), "--broker-port": free_ports(*above)}
        chosen["--proxy-port"] = free_ports()
        return [word for option, port in chosen.items() for word in (option, str(port))]

    @property
    def output(self) -> str:
        return "".join(self._lines)

    @property
    def web(self) -> psutil.Process:
        """The web process that runs now; `process` is the guardian above it."""
        return self._children("-m dashboard up")[0]

    def cpu_s(self) -> float:
        """What all processes have used so far: says more than a clock where others use the machine, too."""
        root = psutil.Process(self.process.pid)
        return sum(sum(process.cpu_times()[:4]) for process in (root, *root.children(recursive=True)))

    def workers(self, role: str = "") -> list[psutil.Process]:
        """The worker processes, those of one role if it is named."""
        return self._children(f"-m appliance {role}")

    def _children(self, words: str) -> list[psutil.Process]:
        return [child for child in psutil.Process(self.process.pid).children() if words in command_of(child)]

    def __enter__(self) -> Self:
        for broker in broker_processes(self._brokers, self._slaves, 0):
            path = self._folder / "brokers" / broker.name / "broker.properties"
            if not path.exists():
                path.parents[1].mkdir(parents=True, exist_ok=True, mode=0o700)
                path.parent.mkdir(exist_ok=True, mode=0o700)
                path.touch(mode=0o600)
                path.write_text("".join(f"{key}={value}\n" for key, value in PROPERTIES.items()))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GANTRY_", "DJANGO_"))}
        started = time.monotonic()
        self.process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=environment | {"PYTHONPATH": str(ROOT)} | self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            umask=0o022,  # a user's shell has it, whatever an earlier test set here
        )
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self._ready.wait(START_TIMEOUT_S)
            self.started_s = time.monotonic() - started
            found = READY.search(self.output)
            if found is None:
                raise AssertionError(f"gantry up did not become ready:\n{self.output}")
        except BaseException:  # also the limit of a whole test
            self.stop(signal.SIGKILL)
            raise
        scheme, self.http, self.namesrv, self.broker, self.data = found.groups()
        self.url = f"{scheme}://{self.http}"
        return self

    def __exit__(self, *_error: object) -> None:
        if self.process.poll() is None:
            self.stop()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and return the exit code; what the appliance started is gone by then."""
        self.process.send_signal(number)
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._ended.wait(STOP_TIMEOUT_S)
        return code

    def _read(self) -> None:
        """Collect the output; the READY line, or the end, wakes whoever waits."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.append(line)
            if line.startswith("GANTRY READY"):
                self._ready.set()
        self.process.stdout.close()
        self._ended.set()
        self._ready.set()


def shared_appliance(*options: str, environment: Mapping[str, str] | None = None) -> Any:
    """A fixture: `gantry = shared_appliance("--brokers", "2")` runs for all tests of the module that ask for it."""

    @pytest.fixture(scope="module")
    def gantry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
        with RunningAppliance(tmp_path_factory.mktemp("gantry") / "data", *options, environment=environment) as running:
            yield running

    return gantry


def command_of(process: psutil.Process) -> str:
    """Its words; none if it has ended meanwhile, or is a child of the test that waits for its end to be read."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
