"""Connected clients on a page and by REST, with a real broker and real clients."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from appliance.proxy.controller import ProxyController
from appliance.proxy.protocol.definition_pb2 import ClientType, Settings
from appliance.settings.roles import ProxyConfig
from dashboard.clients.listing import client_book
from dashboard.cluster.gateway import Gateway
from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from gantrymq import Message, Producer
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.errors import ResponseError
from gantrymq.remoting.codes import ResponseCode
from tests.appliance.proxy.proxies import ProxyClient
from tests.dashboard.conftest import Client, Topic, api_for
from tests.harness import ServingCluster
from tests.waiting import until

numbers = itertools.count(1)


@pytest_asyncio.fixture(loop_scope="session")
async def producer(cluster: ServingCluster, gateway: Gateway, make_topic: Topic) -> AsyncIterator[Producer]:
    """One that has sent a message, and so said who it is."""
    client_book.clear()
    number = next(numbers)  # what another test closed may still be listed
    topic = await make_topic(f"told-of-clients-{number}")
    async with Producer(cluster.namesrv_address, group=f"makers-{number}", instance_name=f"n{number}") as running:
        await running.send(Message(topic, b"x"))
        await until_listed(gateway, running.client_id)
        yield running
    client_book.clear()


async def until_listed(gateway: Gateway, client_id: str) -> Any:
    """The client's row, once its heartbeat is there."""
    found: list[Any] = []

    async def is_there() -> bool:
        client_book.forget()
        found[:] = [one for one in (await client_book.listing(gateway)).named if one.client_id == client_id]
        return bool(found)

    await until(is_there)
    return found[0]


async def test_the_page_shows_clients_and_their_groups(producer: Producer, log_in: Client) -> None:
    client = await log_in(Role.READER)
    text = (await client.get("/clients")).content.decode()
    assert producer.client_id in text and producer.group in text and "PYTHON" in text and "4.9.4" in text
    assert "Disconnect" not in text, "a reader changes nothing"
    assert f'<span class="phone"><small>sends as {producer.group}</small></span>' in text, (
        "a telephone shows whose it is"
    )
    part = (await client.get(f"/clients?q={producer.group}", headers={"HX-Target": "client-list"})).content.decode()
    assert part.startswith('<div id="client-list"') and producer.client_id in part
    assert "Nothing matches" in (await client.get("/clients?q=no-such-one")).content.decode()
    assert "no client id" in (await client.get("/clients?show=tools")).content.decode(), "the dashboard's own calls"


async def test_rates_are_known_from_the_second_look_on(producer: Producer, gateway: Gateway) -> None:
    async def has_rate() -> bool:
        return (await until_listed(gateway, producer.client_id)).rate is not None

    await until(has_rate)


async def test_rest_lists_clients_and_says_what_it_knows(producer: Producer, users: dict[str, User]) -> None:
    api = await api_for(users["reader"], "read")
    status, answer = await api.call("get", f"/clients?q={producer.group}")
    assert status == 200 and answer["telling_less"] == [] and answer["total"] == 1
    [one] = answer["items"]
    assert (one["client_id"], one["producer_groups"], one["is_twice"]) == (producer.client_id, [producer.group], False)
    [connection] = one["connections"]
    assert (connection["has_tls"], connection["account"]) == (False, "") and connection["requests"] >= 1


async def test_a_disconnected_client_comes_back_and_the_audit_log_says_who_did_it(
    producer: Producer, gateway: Gateway, log_in: Client
) -> None:
    client = await log_in(Role.OPERATOR)
    before = await until_listed(gateway, producer.client_id)
    asked = (await client.get("/clients/disconnect", {"id": producer.client_id})).content.decode()
    assert (
        "1 connection" in asked and "gantry admin clients disconnect" in asked and "/api/v1/clients/disconnect" in asked
    )
    answer = await client.post("/clients/disconnect", {"id": producer.client_id})
    assert (answer.status_code, answer["Location"]) == (302, "/clients")
    entry = await AuditEntry.objects.filter(action="client disconnected").afirst()
    assert entry is not None and (entry.who, entry.target) == ("operator", producer.client_id)

    async def is_back() -> bool:
        await producer.send(Message(producer.group.replace("makers", "told-of-clients"), b"again"))
        after = await until_listed(gateway, producer.client_id)
        return bool(after.connections[0].address != before.connections[0].address)

    await until(is_back)
    assert (await client.post("/clients/disconnect", {"id": "no-such-client"})).status_code == 404


async def test_rest_disconnects_and_refuses_who_is_not_there(producer: Producer, users: dict[str, User]) -> None:
    api = await api_for(users["operator"], "write")
    status, answer = await api.call("post", "/clients/disconnect", {"client_id": producer.client_id})
    assert (status, answer["items"]) == (200, [{"broker": "broker-a", "closed": 1}])
    assert (await api.call("post", "/clients/disconnect", {"client_id": "no-such"}))[0] == 404


async def test_a_broker_of_apache_tells_less_and_disconnects_no_client(
    producer: Producer, gateway: Gateway, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: ClientAdmin, address: str) -> None:
        raise ResponseError(
            ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 29403 not supported", address=address
        )

    monkeypatch.setattr(ClientAdmin, "connections_at", refuse)
    found = await until_listed(gateway, producer.client_id)
    assert (found.producer_groups, found.rate, found.has_tls) == ((producer.group,), None, None)
    client = await log_in(Role.OPERATOR)
    assert "Apache brokers report neither" in (await client.get("/clients")).content.decode()
    refused = await client.post("/clients/disconnect", {"id": producer.client_id})
    assert refused.status_code == 409 and "only GantryMQ" in refused.content.decode()


async def test_clients_of_rocketmq_5_are_listed_with_the_proxy_they_came_by(
    cluster: ServingCluster, gateway: Gateway, log_in: Client, make_topic: Any
) -> None:
    topic = await make_topic("told-by-a-proxy")
    config = ProxyConfig(listen_port=0, namesrv_addresses=cluster.namesrv_address)
    async with ProxyController(config) as proxy:
        reader = ProxyClient(proxy.port, "h@1@0@r", {"x-mq-language": "GO", "x-mq-client-version": "5.1.4"})
        maker = ProxyClient(proxy.port, "h@2@0@m", {"x-mq-language": "HTTP", "x-mq-client-version": "1.0.8"})
        reads, makes = Settings(client_type=ClientType.PUSH_CONSUMER), Settings(client_type=ClientType.PRODUCER)
        reads.subscription.group.name = "poppers"
        reads.subscription.subscriptions.add().topic.name = topic
        makes.publishing.topics.add().name = topic
        async with reader.telemetry(reads), maker.telemetry(makes):
            found = await until_listed(gateway, "h@1@0@r")
            assert (found.language, found.version_text, found.consumer_groups) == ("GO", "5.1.4", ("poppers",))
            assert (found.proxies, found.is_twice) == ((proxy.endpoint,), False)
            sends = await until_listed(gateway, "h@2@0@m")
            assert (sends.language, sends.version_text, sends.sends_as) == ("NODE_JS", "1.0.8", (topic,))
            client = await log_in(Role.OPERATOR)
            text = (await client.get(f"/clients?q={proxy.endpoint}")).content.decode()
            assert "gRPC" in text and "h@1@0@r" in text and f"by the proxy {proxy.endpoint}" in text
            assert "a proxy, at" in text, "the proxy itself is a client of the broker"
            assert "disconnect?id=h%401%400%40r" not in text
            api = await api_for(await User.objects.aget(username="operator"), "write")
            status, answer = await api.call("get", "/clients?q=poppers")
            [one] = answer["items"]
            assert status == 200 and (one["version"], one["connections"][0]["proxy"]) == ("5.1.4", proxy.endpoint)
            status, answer = await api.call("post", "/clients/disconnect", {"client_id": "h@1@0@r"})
            assert status == 409 and "the proxy" in str(answer)
            assert (await gateway.calls.call(lambda admin: admin.groups.members("poppers"))).client_ids == ["h@1@0@r"]
        for one in (reader, maker):
            one.channel.close()
    client_book.clear()
