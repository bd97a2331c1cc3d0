"""What brokers know of the clients that a proxy serves: who is there, in which group, and that they have gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from appliance.acl.account import DENY, SUB, Account
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.proxy.clients import Client
from appliance.proxy.protocol.definition_pb2 import Resource
from appliance.proxy.reporting import CLIENTS_TOLD_MAX, report_of
from gantrymq import AdminClient
from gantrymq.errors import ResponseError
from gantrymq.remoting.admin_bodies import ConsumerConnection, TopicConfig
from gantrymq.remoting.bodies import ProxiedClient, ProxyReport
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.signature import SigningKey
from tests.appliance.proxy.proxies import ProxyClient, consumer_settings, proxied
from tests.waiting import until


async def members(admin: AdminClient, address: str, group: str = "readers") -> ConsumerConnection | None:
    try:
        return await admin.clients.consumers_at(address, group)
    except ResponseError as exc:
        assert exc.code == ResponseCode.CONSUMER_NOT_ONLINE
        return None


@pytest.mark.usefixtures("door")
async def test_a_broker_knows_consumers_by_their_proxy_and_forgets_them(tmp_path: Path) -> None:
    async with proxied(tmp_path) as scene, AdminClient(scene.cluster.namesrv_address) as admin:
        address = scene.cluster.broker_address
        await admin.topics.create(TopicConfig("orders", 2, 2))
        client = ProxyClient(scene.proxy.port, "host@7@0@go", {"x-mq-language": "GO", "x-mq-client-version": "5.1.4"})

        async def is_known() -> bool:
            return await members(admin, address) is not None

        async with client.telemetry(consumer_settings()):
            await until(is_known)
            found = await members(admin, address)
            assert found is not None and found.consume_type == "CONSUME_POP"
            [member] = found.connection_set
            assert (member.client_id, member.language, member.version) == ("host@7@0@go", "GO", 441)
            wanted = found.subscription_table["orders"]
            assert (wanted.sub_string, wanted.expression_type) == ("a || b", "TAG")
            [proxy] = [one for one in await admin.clients.connections_at(address) if one.proxy]
            assert proxy.proxy == f"127.0.0.1:{scene.proxy.port}" == scene.proxy.endpoint
            [told] = proxied_of(proxy.proxied, "host@7@0@go")
            assert (told.version, told.group, told.wanted) == ("5.1.4", "readers", {"orders": "TAG a || b"})
            assert scene.cluster.broker.consumers.get("readers") is None, "no queue is given to it by rebalancing"
            await client.call("NotifyClientTermination", group=Resource(name="readers"))

            async def is_forgotten() -> bool:
                return await members(admin, address) is None

            await until(is_forgotten)
        client.channel.close()


def proxied_of(clients: list[ProxiedClient], client_id: str) -> list[ProxiedClient]:
    return [one for one in clients if one.client_id == client_id]


@pytest.mark.usefixtures("door")
async def test_a_proxy_that_ends_takes_its_clients_along(tmp_path: Path) -> None:
    async with proxied(tmp_path) as scene, AdminClient(scene.cluster.namesrv_address) as admin:
        address = scene.cluster.broker_address
        await admin.topics.create(TopicConfig("orders", 2, 2))

        async def are(there: bool) -> bool:
            return (await members(admin, address) is not None) == there

        async with scene.client.telemetry(consumer_settings()):
            await until(lambda: are(True))
            [connection] = [
                one for one in scene.cluster.broker.server.connections
                if scene.cluster.broker.proxied.of_connection(one) is not None
            ]  # fmt: skip
            connection.close("the proxy is killed")
            assert await members(admin, address) is None
            await until(lambda: are(True))  # it connects again, and reports


def client_of(number: int, group: str = "readers") -> Client:
    return Client(f"c{number}", consumer_settings(group), address="10.0.0.1", language="HTTP", version="1.0.8")


def test_a_report_is_bounded_and_leaves_out_what_the_account_may_not() -> None:
    report = report_of("here:8081", [client_of(number) for number in range(CLIENTS_TOLD_MAX + 5)], None)
    assert len(report.clients) == CLIENTS_TOLD_MAX and report.clients[0].language == "NODE_JS"
    account = Account("shop", SigningKey("12345678"), groups={"readers": SUB}, default_group=DENY)
    told = report_of("here:8081", [client_of(1), client_of(2, "others")], account)
    assert [client.client_id for client in told.clients] == ["c1"]
    long = client_of(3)
    long.settings.subscription.subscriptions[0].expression.expression = "x" * 10_000
    assert len(report_of("", [long], None).clients[0].wanted["orders"]) < 300


def test_a_report_counts_until_the_proxy_is_silent() -> None:
    now = time.monotonic()
    book = ProxiedClients(clock=lambda: now)
    connection = object()
    book.note(connection, ProxyReport("here:8081", [ProxiedClient("c", group="g")]))  # type: ignore[arg-type]
    assert [one.client_id for one in book.members("g")] == ["c"] and not book.members("other")
    now += 121
    assert not book.members("g") and book.of_connection(connection) is None  # type: ignore[arg-type]
