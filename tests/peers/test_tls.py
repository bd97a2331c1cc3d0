"""The SDK over TLS to Apache RocketMQ: its built-in test certificate, and enforcing with certificates of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gantrymq import AdminClient, Message, Producer
from gantrymq.errors import GantryError, ResponseError
from gantrymq.remoting.tls import TlsConfig
from tests.certificates import authority, trusting
from tests.peers.fixtures import make_apache_peer
from tests.waiting import WITHIN_S

pytestmark = pytest.mark.slow


async def until_registered(name_server: str, broker: str, tls: TlsConfig) -> None:
    """Wait until a broker that was only launched is up; rpc.py, which waits elsewhere, speaks plainly."""
    async with asyncio.timeout(WITHIN_S), AdminClient(name_server, tls=tls) as admin:
        while True:
            try:
                if broker in (await admin.cluster.info()).broker_addr_table:
                    return
            except GantryError:
                pass  # not up yet: that is what we wait for
            await asyncio.sleep(0.5)


async def send(name_server: str, tls: TlsConfig | None) -> None:
    async with Producer(name_server, tls=tls) as producer:
        assert (await producer.send(Message("TBW102Tls", b"over TLS"), timeout_s=20)).msg_id


async def test_its_test_certificate_is_trusted_by_nobody_unless_told_so(tmp_path: Path) -> None:
    with make_apache_peer(tmp_path / "apache", java_properties={"tls.server.mode": "permissive"}) as peer:
        await send(peer.namesrv_address, TlsConfig(verify=False))
        await send(peer.namesrv_address, None)  # permissive is its default
        with pytest.raises(GantryError, match="certificate"):
            await send(peer.namesrv_address, trusting())


async def test_enforcing_with_mutual_certificates(tmp_path: Path) -> None:
    folder = authority()
    properties = {
        "tls.server.mode": "enforcing",
        "tls.test.mode.enable": "false",
        "tls.server.certPath": folder / "server.pem",
        "tls.server.keyPath": folder / "server.key",
        "tls.server.authClient": "true",
        "tls.server.need.client.auth": "require",
        "tls.server.trustCertPath": folder / "ca.pem",
        "tls.client.certPath": folder / "client.pem",
        "tls.client.keyPath": folder / "client.key",
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": folder / "ca.pem",
    }
    peer = make_apache_peer(tmp_path / "apache", java_properties=properties)
    try:
        peer.launch()
        tls = trusting(with_certificate=True)
        await until_registered(peer.namesrv_address, peer.broker_name, tls)
        await send(peer.namesrv_address, tls)
        for stranger in (None, trusting()):
            with pytest.raises(GantryError) as refusal:
                await send(peer.namesrv_address, stranger)
            assert not isinstance(refusal.value, ResponseError)  # nobody answered
    finally:
        peer.stop()
