"""All flows of java/Flows.java in one process of a Java client, several at a time, and what each told about itself."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from appliance.bench.maven import Artifacts, ToolError
from tests.conftest import missing, require_tool
from tests.interop.broker_cluster import BrokerCluster
from tests.interop.clients import JavaClient

FLOWS = (
    "broadcast",
    "dead-letters",
    "filters",
    "from-timestamp",
    "lite-assign",
    "lite-subscribe",
    "namespace",
    "ordered",
    "pull",
    "queries",
    "requests",
    "rotation",
    "sends",
    "trace",
    "transactions",
    "vip",
)
MADE_BY_CLIENTS = {"namespace"}
# 5.3.3's request() waits for the answer to its send instead of the reply, and gives up when that comes.
WITHOUT_REQUESTS = ("requests",)


def make_client(logs: Path, client: Artifacts, programs: Sequence[Path] | None = None) -> JavaClient:
    """A Java client of RocketMQ 5; without its tools the test skips aloud, and fails in CI."""
    for name in ("java", "javac", "mvn"):
        require_tool(name, "it runs RocketMQ 5's Java client")
    try:
        return JavaClient(logs, client=client, programs=programs)
    except ToolError as exc:
        missing("RocketMQ 5's Java client", str(exc))
        raise


def assert_flows_work(
    java: JavaClient,
    cluster: BrokerCluster,
    encoding: str,
    *,
    compression: str,
    is_short: bool = True,
    without: Collection[str] = (),
) -> None:
    """Run the flows, `without` some; is_short: fields of sends have short names (code 310), or long ones (10)."""
    properties = {
        "rocketmq.message.compressType": compression,
        "org.apache.rocketmq.client.sendSmartMsg": str(is_short).lower(),
    }
    wanted = [flow for flow in FLOWS if flow not in without]
    told = _run(java, cluster, encoding, properties, wanted)
    slowest = ", ".join(f"{name} {told[name]['ms'] / 1000:.1f}" for name in sorted(told, key=lambda n: -told[n]["ms"]))
    print(f"{java.version}, seconds: {slowest}")
    failures = {name: facts["failure"] for name, facts in told.items() if not facts["ok"]}
    assert not failures, json.dumps(failures, indent=1)
    assert sorted(told) == wanted
    assert set(told["rotation"]["brokers"]) == set(cluster.names)


def _run(
    java: JavaClient, cluster: BrokerCluster, encoding: str, properties: Mapping[str, str], flows: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Flow name to what the program told about it."""
    suffix = str(time.monotonic_ns())
    cluster.create_topics(*(f"Flow-{flow}-{suffix}" for flow in flows if flow not in MADE_BY_CLIENTS))
    keys = (cluster.account.access_key, cluster.account.secret_key) if cluster.account else ("-", "-")
    with java.run(
        "Flows",
        cluster.namesrv_address,
        suffix,
        len(cluster.names),
        *keys,
        *flows,
        encoding=encoding,
        java_properties={**cluster.java_properties, **properties, "rocketmq.client.rebalance.waitInterval": 500},
    ) as program:
        program.wait_done()
    assert program.lines("FAILED") == []
    return {facts["flow"]: facts for facts in (json.loads(line[0]) for line in program.lines("FLOW"))}
