"""Fixtures that start Apache RocketMQ. Import the name to use it: `from tests.peers.fixtures import apache_peer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from appliance.bench.apache_peer import SERVERS
from appliance.bench.maven import ToolError
from tests.any_disk import SLOW_DISK
from tests.conftest import missing, require_tool
from tests.interop.class_archive import archive_flags
from tests.peers import ApachePeer

REASON = "Apache RocketMQ, from Maven's jars, is the peer of this test"

# Apache's broker refuses what waited 200 ms, and all while an append takes a second, which is not what tests are about
# that share the machine. Its name server forgets it when their connection ends, as it does after 6 s without an answer,
# until it registers anew.
PATIENT = {
    "waitTimeMillsInSendQueue": "20000", "waitTimeMillsInPullQueue": "20000", **SLOW_DISK,
    "registerBrokerTimeoutMills": "20000", "registerNameServerPeriod": "10000",
}  # fmt: skip

# Otherwise each of its three ports makes a key and a certificate, which takes two thirds of what a start takes.
PLAIN = {"tls.server.mode": "disabled"}


def make_apache_peer(
    home: Path,
    *,
    heap: str = "512m",
    broker_properties: Mapping[str, str] | None = None,
    java_properties: Mapping[str, object] | None = None,
) -> ApachePeer:
    """An ApachePeer that is not started yet; without java or Maven the test skips aloud, and fails in CI."""
    require_tool("java", REASON)
    require_tool("mvn", REASON)
    try:
        return ApachePeer(
            home,
            heap=heap,
            broker_properties=PATIENT | dict(broker_properties or {}),
            java_properties=PLAIN | dict(java_properties or {}),
            java_flags=archive_flags(SERVERS),
            is_measured=False,
        )
    except ToolError as exc:
        missing("the jars of Apache RocketMQ", str(exc))
        raise


@pytest.fixture(scope="module")
def apache_peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApachePeer]:
    """A running name server and broker of Apache RocketMQ, one for the tests of a module."""
    with make_apache_peer(tmp_path_factory.mktemp("apache")) as peer:
        yield peer
