"""Fixtures of the interop tests: a name server and a broker as processes, and the official clients."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from appliance.bench.maven import ToolError
from appliance.bench.peer import Peer
from tests.conftest import missing, require_tool
from tests.harness import LocalCluster
from tests.interop.clients import JavaClient, JavaScriptClient
from tests.interop.go_client import GoClient
from tests.interop.mqadmin.session import TOOLS_OF_THE_PEER, MqAdminSession
from tests.interop.mqadmin.tool import MqAdmin
from tests.peers.fixtures import make_apache_peer

PEER = os.environ.get("GANTRY_INTEROP_PEER", "gantry")


def make_cluster(home: Path, *, broker_properties: Mapping[str, str] | None = None) -> Peer:
    """Our processes, or Apache's when GANTRY_INTEROP_PEER says so; not started yet."""
    if PEER == "apache":
        return make_apache_peer(home, heap="1g", broker_properties=broker_properties)
    return LocalCluster(home, broker_properties=broker_properties)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """One name server and one broker for the tests that don't stop it."""
    with make_cluster(tmp_path_factory.mktemp("interop")) as running:
        print(f"interop against {running.version}")
        yield running


@pytest.fixture
def own_cluster(tmp_path: Path) -> Iterator[Peer]:
    """A name server and a broker that the test may stop and kill."""
    with make_cluster(tmp_path / "cluster") as running:
        yield running


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    """The official Java client; without java, javac or Maven the test skips aloud, and fails in CI."""
    for tool in ("java", "javac", "mvn"):
        require_tool(tool, "it runs the official Java client")
    try:
        return JavaClient(tmp_path_factory.mktemp("java"))
    except ToolError as exc:
        missing("the official Java client", str(exc))
        raise


@pytest.fixture(scope="session")
def mqadmin(tmp_path_factory: pytest.TempPathFactory) -> MqAdmin:
    """The official command line; without java or Maven the test skips aloud, and fails in CI."""
    for tool in ("java", "mvn"):
        require_tool(tool, "it runs RocketMQ's own command line")
    try:
        return MqAdmin(tmp_path_factory.mktemp("mqadmin"))
    except ToolError as exc:
        missing("RocketMQ's own command line", str(exc))
        raise


@pytest.fixture(scope="session")
def mqadmin_session(tmp_path_factory: pytest.TempPathFactory, mqadmin: MqAdmin) -> Iterator[MqAdminSession]:
    """The official command line in one virtual machine, unsigned; `mqadmin` skips aloud without Java."""
    with MqAdminSession(tmp_path_factory.mktemp("mqadmin-session"), TOOLS_OF_THE_PEER) as running:
        yield running


@pytest.fixture(scope="session")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> JavaScriptClient:
    """The npm client; without node or npm the test skips aloud, and fails in CI."""
    for tool in ("node", "npm"):
        require_tool(tool, "it runs the npm client ali-ons")
    try:
        return JavaScriptClient(tmp_path_factory.mktemp("javascript"))
    except ToolError as exc:
        missing("the npm client ali-ons", str(exc))
        raise


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> GoClient:
    """The official Go client; without Go the test skips aloud, and fails in CI."""
    require_tool("go", "it builds the official Go client")
    try:
        return GoClient(tmp_path_factory.mktemp("go"))
    except ToolError as exc:
        missing("the official Go client", str(exc))
        raise
