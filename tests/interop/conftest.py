"""Fixtures of the interop tests: a name server and a broker as processes, and the official clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

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


Client = TypeVar("Client")


def client_of(make: Callable[[Path], Client], what: str, *tools: str, folder: Path) -> Client:
    """A client with its programs; without one of its tools the test skips aloud, and fails in CI."""
    for tool in tools:
        require_tool(tool, f"it runs {what}")
    try:
        return make(folder)
    except ToolError as exc:
        missing(what, str(exc))
        raise


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    tools = ("java", "javac", "mvn")
    return client_of(JavaClient, "the official Java client", *tools, folder=tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def mqadmin(tmp_path_factory: pytest.TempPathFactory) -> MqAdmin:
    what = "RocketMQ's own command line"
    return client_of(MqAdmin, what, "java", "mvn", folder=tmp_path_factory.mktemp("mqadmin"))


@pytest.fixture(scope="session")
def mqadmin_session(tmp_path_factory: pytest.TempPathFactory, mqadmin: MqAdmin) -> Iterator[MqAdminSession]:
    """The official command line in one virtual machine, unsigned; `mqadmin` skips aloud without Java."""
    with MqAdminSession(tmp_path_factory.mktemp("mqadmin-session"), TOOLS_OF_THE_PEER) as running:
        yield running


@pytest.fixture(scope="session")
def javascript(tmp_path_factory: pytest.TempPathFactory) -> JavaScriptClient:
    what = "the npm client ali-ons"
    return client_of(JavaScriptClient, what, "node", "npm", folder=tmp_path_factory.mktemp("javascript"))


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> GoClient:
    return client_of(GoClient, "the official Go client", "go", folder=tmp_path_factory.mktemp("go"))
