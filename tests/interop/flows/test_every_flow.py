"""Every message kind and flow of the official Java client, and what ali-ons can do, against each kind of cluster.

Flow by flow, which encodings, TLS, accounts and how many brokers it meets, and where else it is shown: README.md.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.interop.broker_cluster import PEER, BrokerCluster
from tests.interop.clients import JavaClient, JavaScriptClient
from tests.interop.java_flows import assert_flows_work

# One run each; every pair of axes meets somewhere, the full product is not run.
CASES = [
    # encoding, TLS, accounts, brokers, compression, fields with short names (code 310) or long ones (10)
    pytest.param("JSON", False, False, 1, "ZLIB", True, id="JSON"),
    pytest.param("ROCKETMQ", False, False, 2, "LZ4", True, id="ROCKETMQ, two brokers"),
    pytest.param("JSON", True, True, 2, "ZSTD", True, id="JSON, TLS, accounts, two brokers"),
    pytest.param("ROCKETMQ", True, True, 1, "ZLIB", False, id="ROCKETMQ, TLS, accounts"),
]


@pytest.mark.parametrize(("encoding", "tls", "acl", "brokers", "compression", "is_short"), CASES)
def test_every_flow_of_the_java_client_works(
    tmp_path: Path,
    java: JavaClient,
    encoding: str,
    tls: bool,
    acl: bool,
    brokers: int,
    compression: str,
    is_short: bool,
) -> None:
    if tls and PEER == "apache":
        pytest.skip("Apache's TLS takes other settings")
    with BrokerCluster(tmp_path / "cluster", brokers=brokers, tls=tls, acl=acl) as cluster:
        assert_flows_work(java, cluster, encoding, compression=compression, is_short=is_short)


@pytest.mark.parametrize(("acl", "brokers"), [(False, 1), (True, 2)], ids=["one broker", "accounts, two brokers"])
def test_every_flow_of_ali_ons_works(tmp_path: Path, javascript: JavaScriptClient, acl: bool, brokers: int) -> None:
    count, topic, unicode = 32, "Flow-js", "ä消息🚀"
    with BrokerCluster(tmp_path / "cluster", brokers=brokers, acl=acl) as cluster:
        cluster.create_topics(topic)
        keys = (cluster.account.access_key, cluster.account.secret_key) if cluster.account else ("-", "-")
        with javascript.run("flows", cluster.namesrv_address, topic, "Flow-js-group", count, *keys) as program:
            program.wait_done()
            # each broadcast consumer gets all, the other one half, one of them twice
            program.wait_for(lambda: program.count("TOLD") >= 2 * count + count // 2 + 1, "messages")
            time.sleep(0.5)  # what would come twice has time to come
    sent = [json.loads(line[0]) for line in program.lines("SENT")]
    assert {message["status"] for message in sent} == {"SEND_OK"}
    assert {message["broker"] for message in sent} == set(cluster.names)
    told = [json.loads(line[0]) for line in program.lines("TOLD")]
    for name in ("one", "two"):
        assert sorted(got["number"] for got in told if got["consumer"] == name) == list(range(count))
    by_tag = [(got["number"], got["times"]) for got in told if got["consumer"] == "tags"]
    assert sorted(by_tag) == sorted([(number, 0) for number in range(0, count, 2)] + [(0, 1)])
    for got in told:
        number = got["number"]
        assert got["body"] == ("five kilobytes " * 350 if number == 2 else f"body-{number}-{unicode}")
        assert (got["tag"], got["keys"]) == ("TagA" if number % 2 == 0 else "TagB", f"key-{number} {unicode}")
        if number == 4:
            assert got["stored"] - got["born"] >= 900  # delay level 2: a second
