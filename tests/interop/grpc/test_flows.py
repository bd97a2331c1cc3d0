"""RocketMQ 5's own clients at our proxy: every kind of message, sent and consumed; nothing is lost, order is kept."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from appliance.bench.maven import ToolError
from tests.conftest import missing, require_tool
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.build_cache import built, digest, tool
from tests.interop.go_client import ENVIRONMENT, QUICK
from tests.interop.grpc.flows import QUICK_CHECKS, check, check_java, java_flows, make_topics, said_at

HERE = Path(__file__).parent
PYTHON_CLIENT = "rocketmq-python-client==5.1.2"

pytestmark = pytest.mark.slow


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


async def said_by(tmp_path: Path, command: Sequence[str | Path], ordered_groups: Sequence[str] = ()) -> list[list[str]]:
    """The lines of a program at our proxy and broker; see said_at and make_topics."""
    with LocalCluster(tmp_path, broker_properties=QUICK_CHECKS) as cluster:
        await make_topics(cluster.namesrv_address, ordered_groups)
        with proxy_process(cluster.namesrv_address, tmp_path / "proxy.log") as (_, port):
            return await said_at(port, command)


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


async def test_the_python_client(tmp_path: Path, python: Path) -> None:
    check(await said_by(tmp_path, [python, HERE / "python" / "flows.py"]))


async def test_the_java_client(tmp_path: Path) -> None:
    check_java(await said_by(tmp_path, java_flows(tmp_path)))


@pytest.mark.parametrize("ordered_groups", [(), ("go-fifo", "go-push")])
async def test_the_go_client(tmp_path: Path, ordered_groups: Sequence[str]) -> None:
    """By the topic's type, then by the groups' settings: what is consumed in order."""

    def build(folder: Path) -> None:
        shutil.copytree(HERE / "go", folder, dirs_exist_ok=True)
        command = ["go", "build", "-mod=readonly", "-buildvcs=false", *QUICK, "-o", "flows", "."]
        tool(command, cwd=folder, environment=ENVIRONMENT)

    folder = program("go", build, "go")
    plain = ["env", f"HOME={tmp_path}", "rocketmq.client.enableSsl=false"]
    check(await said_by(tmp_path, [*plain, folder / "flows"], ordered_groups))


async def test_the_node_client(tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        shutil.copytree(HERE / "javascript", folder, dirs_exist_ok=True)
        tool(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder)

    folder = program("javascript", build, "node", "npm")
    check(await said_by(tmp_path, ["env", f"HOME={tmp_path}", "node", folder / "flows.mjs"]))
