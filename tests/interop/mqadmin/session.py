"""Many sub-commands of the official command line in one virtual machine: see java_tools/RunCommands.java."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from appliance.bench import apache_peer, maven
from tests.interop.build_cache import QUICK_COMPILER, built, tool
from tests.interop.class_archive import archive_flags
from tests.interop.mqadmin.tool import write_logback
from tests.waiting import WITHIN_S

HERE = Path(__file__).parents[1]
DRIVER = HERE / "java_tools" / "RunCommands.java"
TOOLS = maven.rocketmqs("4.9.8", "tools")  # the newest 4.9
TOOLS_FIVE = maven.rocketmqs("5.1.4", "tools")  # what people have who moved their tools first
TOOLS_OF_THE_PEER = apache_peer.SERVERS  # 4.9.7, the last with getAclConfig

# Classes that are in the jar but that mqadmin does not list.
UNLISTED = ("offset.GetConsumerStatusCommand", "offset.ResetOffsetByTimeOldCommand", "consumer.ConsumerSubCommand")
UNLISTED_NAMES = ("getConsumerStatus", "resetOffsetByTimeOld", "consumer")

TIMED_OUT = "RemotingTimeoutException"


class Printed(NamedTuple):
    """What a command printed, errors too, and whether it had to be interrupted."""

    text: str
    was_cut: bool


class MqAdminSession:
    """`with MqAdminSession(home, tools) as session: session.run(...)`; `home` is a folder of its own."""

    def __init__(self, home: Path, tools: maven.Artifacts = TOOLS, *, unlisted: Sequence[str] = ()) -> None:
        self.home = home
        self._tools = tools
        self._jars = maven.copied_jars(tools)
        self._classes = _classes(self._jars)
        self._unlisted = ",".join(f"org.apache.rocketmq.tools.command.{name}" for name in unlisted)
        write_logback(home)

    @property
    def version(self) -> str:
        (jar,) = self._jars.glob("rocketmq-tools-*.jar")
        return jar.stem

    def logs(self) -> str:
        """What client and tools have written into their log files."""
        return "".join(path.read_text(errors="replace") for path in self.home.rglob("*.log"))

    def wait_for_log(self, words: str, timeout_s: float) -> None:
        """Wait until the words stand in a log file."""
        deadline = time.monotonic() + timeout_s
        while words not in self.logs():
            assert time.monotonic() < deadline, f"no {words!r} in {timeout_s:g} s"
            time.sleep(0.2)

    def sign_with(self, access_key: str, secret_key: str) -> None:
        """From now on commands sign what they send: each of them reads the file."""
        (self.home / "conf" / "tools.yml").write_text(f"accessKey: {access_key}\nsecretKey: {secret_key}\n")

    def __enter__(self) -> Self:
        self._process = self._started()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def _started(self) -> subprocess.Popen[str]:
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", *apache_peer.JAVA_17_FLAGS]
        command += [
            f"-Drocketmq.home.dir={self.home}",
            f"-Duser.home={self.home}",
            f"-Djava.io.tmpdir={self.home}",
            f"-Dunlisted={self._unlisted}",
        ]
        command += archive_flags(self._tools)
        command += ["-cp", f"{maven.class_path(self._jars)}:{self._classes}", "RunCommands"]
        with (self.home / "virtual-machine.log").open("ab") as errors:
            return subprocess.Popen(  # some commands write files where they are run
                command,
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )

    def _stop(self) -> None:
        try:
            self._process.communicate(timeout=120)  # the end of its input is the end of its work
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def run(self, *arguments: object, limit_s: float = 30) -> Printed:
        """Run one command, at most `limit_s` seconds; again when its own 5 s were over, as on a busy machine."""
        deadline = time.monotonic() + WITHIN_S
        while True:
            printed = self._run_once(arguments, limit_s)
            if TIMED_OUT not in printed.text or time.monotonic() > deadline:
                return printed

    def _run_once(self, arguments: Sequence[object], limit_s: float) -> Printed:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        fields = [str(round(limit_s * 1000)), *map(str, arguments)]
        self._process.stdin.write("\t".join(fields) + "\n")
        self._process.stdin.flush()
        ending, _, printed = self._process.stdout.readline().rstrip("\n").partition("\t")
        if ending not in ("CUT", "ENDED"):
            self._stop()
            self._process = self._started()  # what mqadmin can't parse ends its process
            raise AssertionError(f"{arguments} ended the virtual machine")
        return Printed(base64.b64decode(printed).decode(), ending == "CUT")


def _classes(jars: Path) -> Path:
    """The driver's class, compiled once for each state of its source and jars."""
    digest = hashlib.sha256(DRIVER.read_bytes() + jars.name.encode()).hexdigest()[:12]

    def build(folder: Path) -> None:
        tool(["javac", *QUICK_COMPILER, "-cp", maven.class_path(jars), "-d", folder, DRIVER])

    return built(f"interop-tools-{digest}", build)
