"""The port for slaves with TLS and accounts: between brokers of GantryMQ, beside slaves that know neither."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from appliance.broker.replication.ha_client import HaState
from appliance.broker.replication.ha_frames import OFFSET
from appliance.broker.replication.handshake import Hello, read_hello
from appliance.broker.replication.slave_guard import SlaveGuard, prove
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import ConfigError
from gantrymq.remoting.signature import Credentials
from tests.appliance.broker.replication.accounts import with_accounts
from tests.appliance.broker.replication.pair import MASTER, STORE, caught_up, follower_of, send, slave_of
from tests.certificates import authority, server_fields
from tests.harness import ServingCluster, serving
from tests.waiting import until


def tls_of_slave() -> dict[str, Any]:
    return {"tls_outgoing": True, "tls_client_trust": str(authority() / "ca.pem"), "ha_tls_mode": "enforcing"}


async def plain_answer(cluster: ServingCluster, what: bytes) -> bytes:
    """What a peer without TLS gets back, up to the connection's end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", cluster.broker.slaves.port)
    try:
        writer.write(what)
        async with asyncio.timeout(60):
            return await reader.read(1)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_log_goes_over_tls_and_an_enforcing_port_gives_a_plain_peer_nothing(tmp_path: Path) -> None:
    tls = server_fields(tls_mode="permissive", ha_tls_mode="enforcing")
    async with serving(tmp_path, broker=MASTER | tls, namesrv=server_fields(), store=STORE) as cluster:
        await send(cluster, 3)
        async with slave_of(cluster, tmp_path / "slave", **tls_of_slave()) as slave:
            await caught_up(slave, cluster.broker)
            [known] = cluster.broker.slaves.slaves
            assert known.epoch is not None
            await until(lambda: known.acknowledged == cluster.broker.store.max_physical_offset)
        assert await plain_answer(cluster, OFFSET.pack(0)) == b""


async def test_on_a_permissive_port_slaves_with_and_without_tls_copy_side_by_side(tmp_path: Path) -> None:
    tls = server_fields(tls_mode="permissive")
    async with serving(tmp_path, broker=MASTER | tls, namesrv=server_fields(), store=STORE) as cluster:
        await send(cluster, 3)
        async with (
            slave_of(cluster, tmp_path / "a", **tls_of_slave()) as a,
            slave_of(cluster, tmp_path / "b", broker_id=2) as b,
        ):
            await caught_up(a, cluster.broker)
            await caught_up(b, cluster.broker)


async def test_a_slave_that_wants_tls_copies_from_no_plain_master(tmp_path: Path) -> None:
    async with serving(tmp_path, broker=MASTER, store=STORE) as cluster:
        settings = tls_of_slave() | {"tls_outgoing": False}
        async with slave_of(cluster, tmp_path / "slave", **settings) as slave:
            client = follower_of(slave).ha_client
            await until(lambda: "haTlsMode=enforcing" in client.why)
            assert client.state is HaState.CONNECTING and not client.received_bytes


async def test_with_accounts_only_an_administrators_slave_copies(tmp_path: Path) -> None:
    accounts = with_accounts(tmp_path)
    async with serving(tmp_path, broker=MASTER | accounts, store=STORE) as cluster:
        port = cluster.broker.slaves.port
        hello = Hello(broker_name=cluster.broker.config.broker_name, role="SLAVE", address="127.0.0.1:1")

        async def refusal(key: str, secret: str) -> str:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(hello.to_bytes())
                challenge = (await read_hello(reader)).challenge
                writer.write(prove(Credentials(key, secret), hello.broker_name, challenge))
                return (await read_hello(reader)).refusal
            finally:
                writer.close()

        assert await plain_answer(cluster, OFFSET.pack(0)) == b"", "a slave of RocketMQ's can't sign"
        assert "not right" in await refusal("administrator", "a-wrong-secret")
        assert "not right" in await refusal("unknown-name", "a-long-secret-of-ours")
        assert "not that of an administrator" in await refusal("application", "another-long-secret")
        assert await refusal("administrator", "a-long-secret-of-ours") == ""
        settings = {"credentials_file": tmp_path / "administrator.yml"}
        async with slave_of(cluster, tmp_path / "slave", **settings) as slave:
            await until(lambda: follower_of(slave).ha_client.is_copying)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"ha_tls_mode": "enforcing"}, "tls.server.certPath"), ({"ha_accounts": True}, "aclEnable=true")],
)
def test_what_can_not_be_had_is_refused_at_the_start(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        SlaveGuard(BrokerConfig(**settings), None, None)
