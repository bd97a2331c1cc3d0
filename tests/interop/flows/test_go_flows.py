"""Every message kind and flow of the official Go client. It writes its headers in JSON and has no TLS in a release."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.interop.broker_cluster import ADMIN, PEER, BrokerCluster
from tests.interop.go_client import FLOWS, GoClient

pytestmark = pytest.mark.slow

MADE_BY_CLIENTS = {"admin", "namespace"}


@pytest.mark.parametrize(("acl", "brokers"), [(False, 1), (True, 2)], ids=["one broker", "accounts, two brokers"])
def test_every_flow_of_the_go_client_works(tmp_path: Path, go: GoClient, acl: bool, brokers: int) -> None:
    if acl and PEER == "apache":
        pytest.skip("Apache's brokers read accounts from another place")
    with BrokerCluster(tmp_path / "cluster", brokers=brokers, acl=acl) as cluster:
        told = run_flows(go, cluster)
    slowest = ", ".join(f"{name} {told[name]['ms'] / 1000:.1f}" for name in sorted(told, key=lambda n: -told[n]["ms"]))
    print(f"seconds: {slowest}; requests: {told['requests']}")
    failures = {name: facts["failure"] for name, facts in told.items() if not facts["ok"]}
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())
    assert sorted(told) == sorted(FLOWS)
    assert set(told["rotation"]["brokers"]) == set(cluster.names)


def run_flows(go: GoClient, cluster: BrokerCluster) -> dict[str, dict[str, Any]]:
    """Flow name to what the program told about it."""
    suffix = str(time.monotonic_ns())
    topics = [f"Flow-{flow}-{suffix}" for flow in FLOWS if flow not in MADE_BY_CLIENTS]
    # This client finds a topic that is made later after 30 s: that of a group's retries is there before it starts.
    cluster.create_topics(*topics, f"%RETRY%Flow-dead-letters-{suffix}-group")
    keys = ["-"] * 4
    if cluster.account:
        keys = [cluster.account.access_key, cluster.account.secret_key, ADMIN.access_key, ADMIN.secret_key]
    addresses = ",".join(cluster.addresses.values())
    with go.run("flows", cluster.namesrv_address, suffix, addresses, *keys) as program:
        program.wait_done()
    assert program.lines("FAILED") == []
    return {facts["flow"]: facts for facts in (json.loads(line[0]) for line in program.lines("FLOW"))}
