"""The official Java client over TLS: both modes, with and without certificates of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import authority, server_fields
from tests.harness import serving
from tests.interop.clients import JavaClient
from tests.interop.mqadmin.tool import MqAdmin

MESSAGES = 20


def tls_properties(*, shows_certificate: bool = False) -> dict[str, object]:
    """-D options of a Java client that trusts our authority (org.apache.rocketmq.remoting.netty.TlsSystemConfig)."""
    folder = authority()
    properties: dict[str, object] = {
        "tls.enable": "true",
        "tls.test.mode.enable": "false",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": folder / "ca.pem",
    }
    if shows_certificate:
        properties |= {"tls.client.certPath": folder / "client.pem", "tls.client.keyPath": folder / "client.key"}
    return properties


@pytest.mark.parametrize(
    ("server", "client"),
    [
        ({"tls_mode": "permissive"}, tls_properties()),
        ({"tls_mode": "permissive"}, {}),
        ({"tls_mode": "enforcing"}, tls_properties()),
        ({"tls_mode": "enforcing", "tls_client_auth": "require"}, tls_properties(shows_certificate=True)),
    ],
    ids=["permissive", "permissive, plain", "enforcing", "enforcing, mutual"],
)
async def test_the_java_client_sends_and_consumes(
    tmp_path: Path, java: JavaClient, server: dict[str, Any], client: dict[str, object]
) -> None:
    folder = authority()
    fields = server_fields(tls_trust=str(folder / "ca.pem"), **server)
    own = {
        "tls_outgoing": True,
        "tls_client_trust": str(folder / "ca.pem"),
        "tls_client_cert": fields["tls_cert"],
        "tls_client_key": fields["tls_key"],
    }
    async with serving(tmp_path, broker={**fields, **own}, namesrv=fields) as cluster:
        await asyncio.to_thread(_send_and_consume, java, cluster.namesrv_address, client)


def _send_and_consume(java: JavaClient, namesrv: str, properties: dict[str, object]) -> None:
    group = ("T", "group", "*", "concurrently")
    with java.run("Produce", namesrv, "T", "producers", MESSAGES, 0, java_properties=properties) as producer:
        producer.wait_done()
        assert len(producer.sent()) == MESSAGES
    with java.run("Consume", namesrv, *group, java_properties=properties) as consumer:
        consumer.wait_for(lambda: len(consumer.got()) >= MESSAGES, "messages")
        assert {got.number for got in consumer.got()} == set(range(MESSAGES))


async def test_a_plain_tool_is_told_why_it_is_refused_and_served_with_tls(tmp_path: Path, mqadmin: MqAdmin) -> None:
    fields = server_fields(tls_mode="enforcing")
    own = {"tls_client_trust": str(authority() / "ca.pem")}
    async with serving(tmp_path, broker={**fields, **own}, namesrv=fields) as cluster:
        refused = await asyncio.to_thread(mqadmin.run, "clusterList", "-n", cluster.namesrv_address)
        assert "takes TLS connections only" in refused
        listed = await asyncio.to_thread(
            mqadmin.run, "clusterList", "-n", cluster.namesrv_address, java_properties=tls_properties()
        )
        assert cluster.broker_address in listed
