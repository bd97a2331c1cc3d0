"""Witnesses beside our own tests: RocketMQ 5.5.0's proxy in front of our broker, and our proxy in front of its broker.

What goes through is what Java's client does at our own two: sends of all kinds, recall, receive, acknowledge, invisible
time, order, transactions with a question.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.bench.maven import ToolError
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from tests.conftest import missing, require_tool
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.interop.grpc.flows import QUICK_CHECKS, check_java, java_flows, make_topics, said_at
from tests.interop.grpc.load.upstream import Upstream
from tests.peers.fixtures import PATIENT

pytestmark = pytest.mark.slow

GROUPS = ("java-normal", "java-fifo", "java-delay", "java-tx", "java-push")  # their proxy has no settings for others
SYNCER_TOPIC = "DefaultHeartBeatSyncerTopic"  # their proxy makes it, and gives up when that takes long
# Recalls are off by default there. Ends are written together; what is asked about before comes twice.
THEIRS = {"recallMessageEnable": "true", "transactionOpBatchInterval": "100", "transactionTimeOut": "5000"}


def upstream(home: Path) -> Upstream:
    for each in ("java", "mvn"):
        require_tool(each, "RocketMQ 5.5.0 is the witness")
    try:
        return Upstream(home, heap="512m", broker_properties={**PATIENT, **QUICK_CHECKS, **THEIRS}, is_measured=False)
    except ToolError as exc:
        missing("the jars of RocketMQ 5.5.0", str(exc))
        raise


async def make_groups(namesrv: str) -> None:
    async with AdminClient(namesrv) as admin:
        for group in GROUPS:
            is_ordered = group in ("java-fifo", "java-push")
            await admin.groups.create(SubscriptionGroupConfig(group, consume_message_orderly=is_ordered))


async def test_their_proxy_in_front_of_our_broker(tmp_path: Path) -> None:
    home = tmp_path / "theirs"
    home.mkdir()
    theirs = upstream(home)
    with LocalCluster(tmp_path / "ours", broker_properties=QUICK_CHECKS) as cluster:
        await make_topics(cluster.namesrv_address)
        await make_groups(cluster.namesrv_address)
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.topics.create(TopicConfig(SYNCER_TOPIC, 1, 1))
        process, port = theirs.start_proxy(cluster.namesrv_address, heap="256m")
        try:
            check_java(await said_at(port, java_flows(tmp_path)))
        finally:
            process.kill()


async def test_our_proxy_in_front_of_their_broker(tmp_path: Path) -> None:
    with upstream(tmp_path / "theirs") as theirs:
        await make_topics(theirs.namesrv_address)
        await make_groups(theirs.namesrv_address)
        with proxy_process(theirs.namesrv_address, tmp_path / "proxy.log") as (_, port):
            check_java(await said_at(port, java_flows(tmp_path)))
