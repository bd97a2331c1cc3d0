"""TLS from end to end: clients of the SDK, brokers and their name servers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from appliance.bench.processes import free_ports
from appliance.broker.controller import BrokerController
from appliance.settings.roles import BrokerConfig
from gantrymq import AdminClient, ConsumeFrom, ConsumeResult, Message, MessageExt, Producer, PushConsumer, SyncProducer
from gantrymq.errors import ConfigError, GantryError
from gantrymq.remoting.tls import TlsConfig
from store.base.config import MessageStoreConfig
from tests.certificates import authority, server_fields, trusting
from tests.harness import SMALL_STORE, serving
from tests.waiting import WITHIN_S


def outgoing(**more: Any) -> dict[str, Any]:
    """Fields of a broker that speaks TLS to its name server."""
    return {"tls_outgoing": True, "tls_client_trust": str(authority() / "ca.pem"), **more}


async def send_and_consume(name_server: str, tls: TlsConfig | ssl.SSLContext | None) -> None:
    """Send over the connection asked for, and have the SDK's consumer get it back."""
    got: asyncio.Queue[bytes] = asyncio.Queue()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeResult:
        for message in messages:
            got.put_nowait(message.body)
        return ConsumeResult.SUCCESS

    async with Producer(name_server, tls=tls) as producer:
        await producer.send(Message("T", b"first"))
        first = ConsumeFrom.FIRST_OFFSET
        consumer = PushConsumer(name_server, group="G", listener=listen, tls=tls, consume_from=first)
        consumer.subscribe("T")
        async with consumer:
            assert await asyncio.wait_for(got.get(), WITHIN_S) == b"first"


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
async def test_everything_works_over_tls(tmp_path: Path, mode: str) -> None:
    fields = server_fields(tls_mode=mode)
    async with serving(tmp_path, broker={**fields, **outgoing()}, namesrv=fields) as cluster:
        await send_and_consume(cluster.namesrv_address, trusting())
        async with AdminClient(cluster.namesrv_address, tls=trusting().context()) as admin:
            assert (await admin.cluster.info()).broker_addr_table
            assert (await admin.brokers.runtime_info(cluster.broker_address))["msgPutTotalTodayNow"] == "1"


async def test_a_permissive_cluster_serves_plain_clients_as_ever(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=server_fields(), namesrv=server_fields()) as cluster:
        await send_and_consume(cluster.namesrv_address, None)


async def test_an_enforcing_cluster_refuses_plain_clients_in_words(tmp_path: Path) -> None:
    """S41."""
    fields = server_fields(tls_mode="enforcing")
    async with (
        serving(tmp_path, broker={**fields, **outgoing()}, namesrv=fields) as cluster,
        AdminClient(cluster.namesrv_address) as admin,
    ):
        with pytest.raises(GantryError, match="TLS"):
            await admin.cluster.info()


async def test_with_mutual_tls_the_broker_shows_its_certificate_to_the_name_server(tmp_path: Path) -> None:
    folder = authority()
    fields = server_fields(tls_mode="enforcing", tls_client_auth="require", tls_trust=str(folder / "ca.pem"))
    shown = {"tls_client_cert": fields["tls_cert"], "tls_client_key": fields["tls_key"]}
    async with serving(tmp_path, broker={**fields, **outgoing(**shown)}, namesrv=fields) as cluster:
        await send_and_consume(cluster.namesrv_address, trusting(with_certificate=True))
        async with AdminClient(cluster.namesrv_address, tls=trusting()) as admin:
            with pytest.raises(GantryError):
                await admin.cluster.info()


async def test_a_broker_does_not_register_with_a_stranger(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    stranger = outgoing(tls_client_trust=str(authority("theirs") / "ca.pem"))
    async with serving(tmp_path, broker=stranger, namesrv=server_fields()) as cluster:
        assert await cluster.broker.outer_api.register_all() == 0
    assert any("certificate verify failed" in str(getattr(record, "why", "")) for record in caplog.records)


async def test_the_vip_port_speaks_tls_too(tmp_path: Path) -> None:
    port = free_ports(-2)
    config = BrokerConfig(listen_port=port, **server_fields(tls_mode="enforcing"))
    store = MessageStoreConfig(root=tmp_path / "store", **SMALL_STORE)
    async with BrokerController(config, store), AdminClient("127.0.0.1:1", tls=trusting()) as admin:
        for address in (f"127.0.0.1:{port}", f"127.0.0.1:{port - 2}"):
            assert "brokerVersion" in await admin.brokers.runtime_info(address)


async def test_a_certificate_that_can_not_be_used_stops_the_start(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("no certificate")
    for path in (wrong, tmp_path / "missing.pem"):
        with pytest.raises(ConfigError, match=path.name):
            BrokerController(BrokerConfig(tls_cert=str(path)), MessageStoreConfig(root=tmp_path / "store"))


async def test_a_key_of_another_certificate_is_refused_at_the_start(tmp_path: Path) -> None:
    fields = server_fields(tls_key=str(authority("theirs") / "server.key"))
    with pytest.raises(ConfigError, match=r"server\.key"):
        BrokerController(BrokerConfig(**fields), MessageStoreConfig(root=tmp_path / "store"))


async def test_blocking_clients_take_the_same_option(tmp_path: Path) -> None:
    fields = server_fields(tls_mode="enforcing")
    async with serving(tmp_path, broker={**fields, **outgoing()}, namesrv=fields) as cluster:

        def send() -> str:
            with SyncProducer(cluster.namesrv_address, tls=trusting()) as producer:
                return producer.send(Message("T", b"x")).msg_id

        assert await asyncio.to_thread(send)
