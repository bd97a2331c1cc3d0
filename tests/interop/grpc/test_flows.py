"""RocketMQ 5's own clients at our proxy: every kind of message, sent and consumed; nothing is lost, order is kept."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from appliance.bench.maven import ToolError, class_path, copied_jars
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.conftest import missing, require_tool
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.build_cache import built, digest, tool

HERE = Path(__file__).parent
PYTHON_CLIENT = "rocketmq-python-client==5.1.2"
QUICK_CHECKS = {"transactionCheckInterval": "1000", "transactionTimeOut": "1000"}
LIMIT_S = 300
TYPES = {"normal": "NORMAL", "fifo": "FIFO", "delay": "DELAY", "tx": "TRANSACTION"}

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def python() -> Path:
    """A Python that has the official client."""

    def build(folder: Path) -> None:
        tool([sys.executable, "-m", "venv", folder / "venv"])
        tool([folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", PYTHON_CLIENT])

    try:
        name = f"interop-python5-{PYTHON_CLIENT.rpartition('=')[2]}-{sys.version_info.major}{sys.version_info.minor}"
        return built(name, build) / "venv" / "bin" / "python"
    except ToolError as exc:
        missing("RocketMQ 5's Python client", str(exc))
        raise


async def make_topics(namesrv: str) -> None:
    async with AdminClient(namesrv) as admin:
        for topic, kind in TYPES.items():
            await admin.topics.create(TopicConfig(topic, 4, 4, attributes={"+message.type": kind}))


async def said_by(tmp_path: Path, command: Sequence[str | Path], *more: str) -> list[list[str]]:
    """The lines of a program at our proxy and broker; see said_at."""
    with LocalCluster(tmp_path, broker_properties=QUICK_CHECKS) as cluster:
        await make_topics(cluster.namesrv_address)
        with proxy_process(cluster.namesrv_address, tmp_path / "proxy.log") as (_, port):
            return await said_at(port, command, *more)


async def said_at(port: int, command: Sequence[str | Path], *more: str) -> list[list[str]]:
    """The lines of a program that gets the endpoints, and more, as its last arguments, as lists of words."""
    whole = [*map(str, command), f"127.0.0.1:{port}", *more]
    done = await asyncio.to_thread(subprocess.run, whole, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert ["DONE"] in lines, (done.stdout[-2000:], done.stderr[-2000:])
    return lines


def program(name: str, build: Callable[[Path], None], *tools: str) -> Path:
    """A folder with what one client needs; without its tools the test skips aloud, and fails in CI."""
    for each in tools:
        require_tool(each, f"it runs RocketMQ 5's client for {name}")
    files = sorted(path for path in (HERE / name).iterdir() if path.is_file())
    try:
        return built(f"interop-grpc-{name}-{digest(files)}", build)
    except ToolError as exc:
        missing(f"RocketMQ 5's client for {name}", str(exc))
        raise


def check(lines: list[list[str]]) -> None:
    """Nothing is missing, nothing came twice, what was recalled did not come, each message group is in order."""
    topics = ("normal", "fifo", "delay", "tx")
    got = {topic: [line[2] for line in lines if line[:2] == ["GOT", topic]] for topic in topics}
    assert sorted(got["normal"]) == sorted(f"n{number}" for number in range(20))
    assert (got["delay"], sorted(got["tx"])) == (["d0"], ["commit", "open"])
    assert ["CHECK", "open"] in lines
    assert ["RECALLED", "true"] in lines
    pushed = [line[1] for line in lines if line[0] == "PUSH"]
    for taken in (got["fifo"], pushed) if pushed else (got["fifo"],):
        for group in range(3):
            mine = [body for body in taken if int(body[1:]) % 3 == group]
            assert mine == [f"f{number}" for number in range(group, 12, 3)]


async def test_the_python_client(tmp_path: Path, python: Path) -> None:
    check(await said_by(tmp_path, [python, HERE / "python" / "flows.py"]))


def java_flows(home: Path) -> list[str | Path]:
    """How Java's flows are run; without its tools the test skips aloud, and fails in CI."""
    for each in ("java", "javac", "mvn"):
        require_tool(each, "it runs RocketMQ 5's client for Java")
    try:
        jars = copied_jars(HERE / "java" / "pom.xml")
    except ToolError as exc:
        missing("RocketMQ 5's client for Java", str(exc))
        raise
    command = ["java", "-XX:TieredStopAtLevel=1", f"-Duser.home={home}", "-cp", class_path(jars)]
    return [*command, HERE / "java" / "Flows.java"]


def check_java(lines: list[list[str]]) -> None:
    check(lines)
    attempts = {line[2]: line[4] for line in lines if line[:2] == ["GOT", "normal"]}
    assert (["LATER", "n0"] in lines, attempts.pop("n0"), set(attempts.values())) == (True, "2", {"1"})


async def test_the_java_client(tmp_path: Path) -> None:
    check_java(await said_by(tmp_path, java_flows(tmp_path)))


async def test_the_go_client(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
        environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
        tool(
            ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", "flows", "."], cwd=folder, environment=environment
        )

    folder = program("go", build, "go")
    plain = ["env", f"HOME={tmp_path}", "rocketmq.client.enableSsl=false"]
    check(await said_by(tmp_path, [*plain, folder / "flows"]))


async def test_the_node_client(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        shutil.copytree(HERE / "javascript", folder, dirs_exist_ok=True)
        tool(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)

    folder = program("javascript", build, "node", "npm")
    check(await said_by(tmp_path, ["env", f"HOME={tmp_path}", "node", folder / "flows.mjs"]))
