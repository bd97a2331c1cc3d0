"""The official clients' programs: built once into the cache, run as processes, read line by line."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from appliance.bench.maven import Artifacts, class_path, copied_jars
from tests.interop.build_cache import QUICK_COMPILER, built, digest, npm_folder, tool
from tests.interop.class_archive import CLIENT, archive_flags
from tests.waiting import WITHIN_S

HERE = Path(__file__).parent
JAVA_SOURCES = HERE / "java"
JAVASCRIPT_SOURCES = HERE / "javascript"
CLOSE_S = 60.0  # for a program to leave its groups: one that is killed keeps its locks
LOOK_S = 0.02  # between two looks at what a program has said: a flood of lines is not looked at line by line

# A consumer looks each second, not each twenty, for queues that are new: those of its retry topic, for one.
QUICK_JAVA = {"rocketmq.client.rebalance.waitInterval": 1000}


@dataclass(frozen=True)
class Sent:
    """An acknowledged message."""

    number: int
    queue_id: int
    queue_offset: int
    unique_id: str  # "" from a client that makes none
    offset_id: str


@dataclass(frozen=True)
class Got:
    """A consumed message."""

    number: int
    queue_id: int
    queue_offset: int
    tag: str
    keys: str
    body: str
    message_id: str


class ClientProgram:
    """One running program. Its lines are kept as lists of fields; `wait_for` looks at them as they come."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, cwd: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as errors:
            self._popen = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                cwd=cwd,
            )
        self._lines: defaultdict[str, list[list[str]]] = defaultdict(list)  # by their first word
        self._last: deque[str] = deque(maxlen=3)
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, name=f"read {name}", daemon=True)
        self._reader.start()

    def lines(self, word: str) -> list[list[str]]:
        """The fields of every line so far that starts with `word`, without the word."""
        with self._changed:
            return self._lines[word].copy()

    def sent(self) -> list[Sent]:
        return [Sent(int(line[0]), int(line[1]), int(line[2]), line[3], line[4]) for line in self.lines("ACK")]

    def got(self) -> list[Got]:
        return [Got(int(line[0]), int(line[1]), int(line[2]), *line[3:7]) for line in self.lines("GOT")]

    def count(self, word: str) -> int:
        with self._changed:
            return len(self._lines[word])

    def queues(self) -> set[int]:
        """The queues that a consumer said it holds, last."""
        told = self.lines("QUEUES")
        return {int(queue_id) for queue_id in told[-1][0].split(",") if queue_id} if told else set()

    def wait_for(self, condition: Callable[[], bool], what: str, within_s: float = WITHIN_S) -> None:
        """Wait until the condition holds; it is looked at soon after each line of the program, and now and then."""
        deadline = time.monotonic() + within_s
        while not condition():
            if self._popen.poll() not in (None, 0):
                raise AssertionError(f"{self.name} ended with {self._popen.returncode}: {self._errors()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: no {what} in {within_s:g} s; {self._errors()}")
            with self._changed:
                self._changed.wait(0.1)
            time.sleep(LOOK_S)

    def wait_started(self) -> None:
        self.wait_for(lambda: self.count("STARTED") > 0, "start")

    def wait_done(self, within_s: float = WITHIN_S) -> None:
        self.wait_for(lambda: self.count("DONE") > 0, "end", within_s)

    def tell(self, line: str) -> None:
        """Write a line to the program's standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(f"{line}\n")
        self._popen.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: the program says good-bye to nobody."""
        self._popen.kill()
        self._popen.wait()

    def close(self) -> None:
        """Ask the program to end by closing its input; kill it when it doesn't."""
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.close()
        try:
            self._popen.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
        self._reader.join()
        assert self._popen.stdout is not None
        self._popen.stdout.close()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        for line in self._popen.stdout:
            with self._changed:
                word, *fields = line.rstrip("\n").split("\t")
                self._lines[word].append(fields)
                self._last.append(" ".join((word, *fields)))
                self._changed.notify_all()

    def _errors(self) -> str:
        with self._changed:
            said = list(self._last)
        return f"it said last {said}, on stderr {self.log.read_text(errors='replace')[-2000:]!r}"


class JavaClient:
    """org.apache.rocketmq:rocketmq-client, run by the programs in java/."""

    name = "java"

    def __init__(self, logs: Path, *, client: Artifacts = CLIENT, programs: Sequence[Path] | None = None) -> None:
        """client: another one; programs: sources of the programs, for a client that not all of java/ compile with."""
        self._logs = logs
        self._client = client
        self._jars = copied_jars(client)
        self._classes = _java_classes(self._jars, programs or sorted(JAVA_SOURCES.glob("*.java")))

    @property
    def version(self) -> str:
        (jar,) = self._jars.glob("rocketmq-client-*.jar")
        return jar.stem

    def log(self) -> str:
        """What the client has written into its own log file, in all programs together."""
        return (self._logs / "logs" / "rocketmqlogs" / "rocketmq_client.log").read_text(errors="replace")

    @contextlib.contextmanager
    def run(
        self,
        program: str,
        *arguments: object,
        encoding: str = "JSON",
        java_properties: Mapping[str, object] = MappingProxyType({}),
        agent: Path | None = None,
    ) -> Iterator[ClientProgram]:
        """Run Produce, Consume, Flows, ... while the block runs.

        encoding: of headers, JSON or ROCKETMQ. java_properties: what -D gives. agent: jar of a Java agent.
        """
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", f"-Duser.home={self._logs}"]
        command += [f"-Djava.io.tmpdir={self._logs}"]
        command += [f"-Drocketmq.serialize.type={encoding}"]
        java_properties = {**QUICK_JAVA, **java_properties}
        command += [f"-D{name}={value}" for name, value in java_properties.items()]
        command += archive_flags(self._client) if agent is None else [f"-javaagent:{agent}"]
        command += ["-cp", f"{class_path(self._jars)}:{self._classes}", "Run", program, *map(str, arguments)]
        yield from running(f"java {program}", command, self._logs)

    def produce(
        self, namesrv: str, topic: str, count: int, rate: int = 0
    ) -> contextlib.AbstractContextManager[ClientProgram]:
        return self.run("Produce", namesrv, topic, f"{topic}-java-producer", count, rate)

    def consume(
        self, namesrv: str, topic: str, group: str, expression: str = "*", *, orderly: bool = False
    ) -> contextlib.AbstractContextManager[ClientProgram]:
        return self.run("Consume", namesrv, topic, group, expression, "orderly" if orderly else "concurrently")


class JavaScriptClient:
    """ali-ons from npm, run by the programs in javascript/."""

    name = "javascript"

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._folder = _npm_folder()

    @property
    def version(self) -> str:
        text = (self._folder / "node_modules/ali-ons/package.json").read_text()
        return "ali-ons-" + text.partition('"version": "')[2].partition('"')[0]

    @contextlib.contextmanager
    def run(self, program: str, *arguments: object) -> Iterator[ClientProgram]:
        """Run flows, produce or consume while the block runs."""
        command: list[str | Path] = ["node", self._folder / f"{program}.js", *map(str, arguments)]
        yield from running(f"node {program}", command, self._logs)

    def produce(
        self, namesrv: str, topic: str, count: int, rate: int = 0
    ) -> contextlib.AbstractContextManager[ClientProgram]:
        return self.run("produce", namesrv, topic, f"{topic}-js-producer", count, rate)

    def consume(
        self, namesrv: str, topic: str, group: str, expression: str = "*", *, orderly: bool = False
    ) -> contextlib.AbstractContextManager[ClientProgram]:
        """This client consumes each queue in order anyway: `orderly` changes nothing."""
        return self.run("consume", namesrv, topic, group, expression)


Client = JavaClient | JavaScriptClient


def running(name: str, command: Sequence[str | Path], logs: Path) -> Iterator[ClientProgram]:
    program = ClientProgram(name, command, logs / f"{name.replace(' ', '-')}-{time.monotonic_ns()}.log", logs)
    try:
        yield program
    finally:
        program.close()


def _java_classes(jars: Path, sources: Sequence[Path]) -> Path:
    """The programs' classes, compiled once for each state of the sources."""

    def build(folder: Path) -> None:
        tool(["javac", *QUICK_COMPILER, "-cp", class_path(jars), "-d", folder, *sources])

    return built(f"interop-java-{digest(sources, jars.name)}", build)


def _npm_folder() -> Path:
    """A folder with the programs and what package-lock.json names, installed once for each state of it."""
    files = sorted([*JAVASCRIPT_SOURCES.glob("*.js"), *JAVASCRIPT_SOURCES.glob("*.json")])
    return npm_folder("interop-javascript", files)
