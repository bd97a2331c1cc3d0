"""Compares GantryMQ's store with Apache's: each is driven directly, without a broker, by a program with the same load.

Unit: microseconds for each message, wall time (best round) and CPU time of the whole process with all threads (mean of
the rounds after the first). The two differ in dispatch: GantryMQ updates queue and index within the put, Apache on a
thread of its own afterwards. So "append" compares what a sender waits for, and "append, dispatched" the whole cost of a
message. Opening is measured in microseconds for the whole store, from load() until it serves and queues and index are
complete, without the start of the interpreter or the JVM.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from appliance.bench import apache_peer, maven
from appliance.bench.disk_watermarks import JAVA_DISK_MARKS
from gantrymq.errors import GantryError

SOURCE = Path(__file__).parents[1] / "java" / "StoreLoad.java"
REASON = "Apache's store is driven by a Java program, compiled when it is measured"
TIMEOUT_S = 900.0
_LOGBACK = '<configuration><root level="OFF"/></configuration>\n'
MakeCommand = Callable[[Path], list[str | Path]]  # of a working folder


class Load(NamedTuple):
    """What both programs are told. `fill_bytes`: of bodies, in the store that is killed and opened again."""

    messages: int  # a round
    fill_bytes: int
    rounds: int = 5
    queues: int = 8
    batch: int = 32
    group: int = 64  # messages that wait together for the disk
    body_bytes: int = 1024

    def arguments(self, count: int) -> list[str]:
        numbers = (count, self.rounds, self.queues, self.batch, self.group, self.body_bytes)
        return [str(number) for number in numbers]


class PeerCost(NamedTuple):
    """A stage, microseconds."""

    stage: str
    wall_us: float
    cpu_us: float


def gantry_command(_work: Path) -> list[str | Path]:
    return [sys.executable, "-m", "appliance.bench.store.load"]


def apache_command(work: Path, heap: str = "2g") -> list[str | Path]:
    """Compile if need be. Raises maven.ToolError, also when a JDK or Maven is missing."""
    java = maven.find_tool("java", REASON)
    jars = maven.copied_jars(apache_peer.POM)
    classes = _classes(jars)
    logback = work / "logback.xml"
    logback.write_text(_LOGBACK)
    flags = [f"-Xms{heap}", f"-Xmx{heap}", *apache_peer.BROKER_FLAGS, *apache_peer.JAVA_17_FLAGS, f"-Duser.home={work}"]
    flags += [f"-Dlogback.configurationFile={logback}"]
    flags += [f"-D{name}={value}" for name, value in JAVA_DISK_MARKS.items()]
    return [java, *flags, "-cp", f"{classes}:{maven.class_path(jars)}", "StoreLoad"]


def measure_store(command: Sequence[str | Path], work: Path, load: Load) -> list[PeerCost]:
    """Every stage, then opened after kill -9 and after a clean stop. Raises GantryError when messages are gone."""
    stages = _lines(_run([*command, "stages", work / "stages", *load.arguments(load.messages)]))
    costs = [PeerCost(**line) for line in stages]
    count = max(load.fill_bytes // load.body_bytes // load.batch, 1) * load.batch
    arguments = load.arguments(count)
    stored = _fill_and_kill([*command, "fill", work / "filled", *arguments])
    for what in ("open after kill -9", "open after a clean stop"):  # the first opening ends with a clean stop
        opened, told = _lines(_run([*command, "open", work / "filled", *arguments]))
        if told["stored"] != stored or stored != count:
            raise GantryError(f"{what}: {told['stored']} of {count} messages there, {stored} before")
        costs.append(PeerCost(what, opened["wall_us"], opened["cpu_us"]))
    return costs


def render_peers(found: dict[str, list[PeerCost]]) -> str:
    """One table. found: by label, "gantry" first."""
    labels = list(found)
    header = f"{'store alone, us a message':<26}" + "".join(f"{label + ' wall':>16}{'CPU':>12}" for label in labels)
    if len(labels) == 2:
        header += f"{'ratio wall':>12}{'CPU':>8}"
    lines = [header]
    for row in zip(*found.values(), strict=True):
        text = f"{row[0].stage:<26}" + "".join(f"{cost.wall_us:>16.2f}{cost.cpu_us:>12.2f}" for cost in row)
        if len(row) == 2:
            text += f"{_ratio(row[0].wall_us, row[1].wall_us):>12}{_ratio(row[0].cpu_us, row[1].cpu_us):>8}"
        lines.append(text)
    lines.append("ratio: GantryMQ / Apache, lower is better; CPU: all threads; opening: us for the whole store")
    return "\n".join(lines)


def _ratio(gantry: float, apache: float) -> str:
    return f"{gantry / apache:.2f}" if apache else "-"


def _classes(jars: Path) -> Path:
    """The program's classes, compiled once for each state of the source."""
    digest = hashlib.sha256(SOURCE.read_bytes() + jars.name.encode()).hexdigest()[:12]
    folder = maven.cache_folder() / f"bench-java-{digest}"
    if not folder.is_dir():
        javac = maven.find_tool("javac", REASON)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "classes"
            _run([javac, "-cp", maven.class_path(jars), "-d", made, SOURCE])
            try:
                made.rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another run was faster
                    raise
    return folder


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise maven.ToolError(f"{command[0]} failed: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _fill_and_kill(command: Sequence[str | Path]) -> int:
    """Return how many messages it had stored before kill -9."""
    arguments = [str(part) for part in command]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            process.kill()
            process.communicate()
        if not line:
            errors.seek(0)
            raise maven.ToolError(f"{arguments[0]} failed: {errors.read()[-2000:].decode(errors='replace')}")
    return int(orjson.loads(line)["stored"])


def _lines(text: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in text.splitlines()]
