"""An application's first minute: ticks that tick themselves, a message from here, programs, and what is wrong."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import dataclasses
import html
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from django.conf import settings

from dashboard.clients.listing import client_book
from dashboard.clients.values import ClientListing, ConnectedClient, Connection
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.values import BrokerRef, ClusterView
from dashboard.connect import checks
from dashboard.connect.checks import examine, explain, is_loopback
from dashboard.connect.looking import Traces, ticks_of
from dashboard.live.sampler import Sampler
from dashboard.models.audit import AuditEntry
from dashboard.models.management import Role, User
from dashboard.status.board import BrokerFacts, BrokerState, Snapshot
from dashboard.status.check import Level
from dashboard.status.services import Services
from dashboard.status.words import accounts_in_words
from gantrymq import Producer
from gantrymq.message.model import Message
from tests.dashboard.conftest import Client, api_for
from tests.gantrymq.client.ports import closed_port
from tests.harness import ServingCluster
from tests.waiting import WITHIN_S, until


def snapshot(*brokers: BrokerState, why: str | None = None) -> Snapshot:
    return Snapshot(time.time(), "127.0.0.1:9876", why, brokers, (), None)


def client(producers: tuple[str, ...] = (), consumers: tuple[str, ...] = ()) -> ConnectedClient:
    return ConnectedClient("10.0.0.1@app", "JAVA", 401, producers, consumers, (Connection("broker-a", "10.0.0.1:5"),))


def test_each_tick_is_what_is_there() -> None:
    answering = BrokerState("broker-a", "a", BrokerFacts("broker-a", "a", 1.0))
    silent = BrokerState("broker-b", "b", None, "not reachable", 1.0)
    nothing = ClientListing((), 1.0)
    assert [one.is_done for one in ticks_of(None, None)] == [False] * 4
    assert [one.is_done for one in ticks_of(snapshot(answering, silent), nothing)] == [True, True, False, False]
    down = ticks_of(snapshot(silent, why="no answer"), None)
    assert [(one.is_done, one.told) for one in down[:2]] == [(False, "no answer"), (False, "broker-b: not reachable")]
    inner = ClientListing((client(("CLIENT_INNER_PRODUCER",), ("g",)),), 1.0)
    ticks = ticks_of(snapshot(answering), inner)
    assert [one.is_done for one in ticks] == [True, True, False, True], "a consumer's inner producer is none"
    assert ticks[3].told == "g at 10.0.0.1@app"
    assert ticks_of(snapshot(answering), ClientListing((client(("shop",)),), 1.0))[2].is_done
    many = ClientListing(tuple(client((), (f"g{number}", "mail")) for number in range(4)), 1.0)
    assert ticks_of(snapshot(answering), many)[3].told == "g0, g1 and 3 more", "groups, and no list of client ids"
    gone = ticks_of(snapshot(answering), nothing, Traces("orders", "billing"))
    assert [one.is_done for one in gone] == [True] * 4
    assert ("orders" in gone[2].told, "billing" in gone[3].told) == (True, True)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("MQClientException: No route info of this topic: orders", "no broker with that topic"),
        ("RemotingConnectException: connect to 10.0.0.1:10911 failed", "does not accept connections"),
        ("dial tcp 10.0.0.1:9876: i/o timeout", "does not accept connections"),
        ("MQBrokerException: CODE: 2 DESC: [TIMEOUT_CLEAN_QUEUE]broker busy", "rejects requests"),
        ("AclException: No accessKey is configured", "account was rejected"),
        ("gantrymq.errors.RequestTimeout: no answer within 3 s", "no answer arrived in time"),
    ],
)
def test_an_error_of_a_client_is_explained(text: str, part: str) -> None:
    assert any(part in meaning for meaning, _ in explain(text))


def test_an_error_that_is_not_known_is_not_explained() -> None:
    assert explain("Segmentation violation in module 7") == []
    assert is_loopback("127.0.0.1:10911") and is_loopback("[::1]:1") and is_loopback("localhost:1")
    assert not is_loopback("10.0.0.1:10911") and not is_loopback("broker.example:10911")


async def test_the_checks_try_what_clients_are_told(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {one.title: one for one in await examine(gateway, await Sampler(gateway).sample(), ())}
    assert (
        found["Address of broker-a"].level is Level.WARN
        and "only this machine" in found["Address of broker-a"].evidence
    )
    assert found["Accounts"].evidence == "off: clients need no account"
    assert found["TLS"].evidence == "off: clients connect without TLS"
    assert accounts_in_words("1 accounts") == "1 account"

    async def two() -> ClusterView:
        address = (await cluster()).brokers[0].address
        return ClusterView(tuple(BrokerRef(name, address, "c") for name in ("one", "two")), time.time())

    cluster = gateway.brokers.list
    monkeypatch.setattr(gateway.brokers, "list", two)
    found = {one.title: one for one in await examine(gateway, None, ())}
    assert found["Addresses of 2 brokers"].evidence.endswith("only this machine reaches: one, two")

    async def lost() -> ClusterView:
        return ClusterView((BrokerRef("gone", f"127.0.0.1:{closed_port()}", "c"),), time.time(), "no answer")

    monkeypatch.setattr(gateway.brokers, "list", lost)
    found = {one.title: one for one in await examine(gateway, None, [f"127.0.0.1:{closed_port()}"])}
    assert {found[title].level for title in ("Name server", "Address of gone", "Proxy")} == {Level.BAD}
    assert list(found)[:2] == ["Name server", "Proxy"], "side by side: what helps both is said once"
    assert (
        "not reachable from here" in found["Address of gone"].evidence
        and "--advertise" in found["Address of gone"].action
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that are asked for their certificate; none is told."""
    found: list[str] = []

    async def ends(addresses: Iterable[str]) -> list[None]:
        found.extend(addresses)
        return []

    monkeypatch.setattr(checks, "ends_of", ends)
    return found


async def test_a_broker_that_does_not_tell_is_counted_and_one_without_tls_shows_no_certificate(
    gateway: Gateway, asked: list[str]
) -> None:
    sample = await Sampler(gateway).sample()
    [here] = sample.brokers
    assert here.facts is not None
    for services, of_tls, of_accounts in (
        (Services(), "without TLS; some brokers do not report it", "no account; some brokers do not report it"),
        (Services(tls="enforcing", accounts="3 accounts"), "different from broker to broker", "required by some"),
    ):
        other = dataclasses.replace(
            here, name="b", address="127.0.0.1:1", facts=dataclasses.replace(here.facts, services=services)
        )
        found = {
            one.title: one for one in await examine(gateway, dataclasses.replace(sample, brokers=(here, other)), ())
        }
        for title, words in (("TLS", of_tls), ("Accounts", of_accounts)):
            assert found[title].level is Level.WARN and words in found[title].evidence
    assert asked == [], "the broker that answers has no TLS"


async def test_only_brokers_that_say_that_they_have_tls_are_asked_for_a_certificate(
    gateway: Gateway, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = await Sampler(gateway).sample()
    [here] = sample.brokers
    assert here.facts is not None
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(3)]
        addresses = [f"127.0.0.1:{port}" for port in ports]

        async def three() -> ClusterView:
            return ClusterView(tuple(BrokerRef(one, one, "c") for one in addresses), time.time())

        monkeypatch.setattr(gateway.brokers, "list", three)
        told = tuple(
            dataclasses.replace(
                here, name=one, address=one, facts=dataclasses.replace(here.facts, services=Services(tls=mode))
            )
            for one, mode in zip(addresses, ("permissive", ""), strict=False)
        )
        await examine(gateway, dataclasses.replace(sample, brokers=told), ())
    assert asked == addresses[:1], "the second does not say, and nothing is known of the third"


def program_of(page: str) -> str:
    found = re.search(r'<pre id="program"[^>]*><code>(.*?)</code>', page, re.DOTALL)
    assert found is not None
    return found[1]


async def test_the_page_has_whole_programs_with_the_address_in_them(gateway: Gateway, log_in: Client) -> None:
    reader = await log_in(Role.READER)
    for language, word in (
        ("java", "DefaultMQProducer"),
        ("go", "NewPushConsumer"),
        ("node", "ali-ons"),
        ("?", "import"),
    ):
        page = (await reader.get("/connect", {"lang": language})).content.decode()
        program = program_of(page)
        assert word in program and "demo-readers" in program
        assert "Send one from here" not in page, "a reader sends nothing"
    ast.parse(html.unescape(program))
    page = (await reader.get("/connect", {"error": "<b>No route info of this topic"})).content.decode()
    assert "no broker with that topic" in page and "<b>No route" not in page


async def test_the_program_with_a_pop_consumer_gets_its_message(
    cluster: ServingCluster, gateway: Gateway, log_in: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = await log_in(Role.READER)
    page = (await reader.get("/connect", {"lang": "python-pop", "protocol": "5"})).content.decode()
    assert "demo-workers" not in page, "it connects to brokers, and to no proxy"
    host, _, port = cluster.namesrv_address.rpartition(":")
    here = dataclasses.replace(settings.APPLIANCE, advertise=host, namesrv_port=int(port))
    monkeypatch.setattr(settings, "APPLIANCE", here)
    page = (await reader.get("/connect", {"lang": "python-pop"})).content.decode()
    program = program_of(page)
    assert cluster.namesrv_address in program
    (tmp_path / "demo.py").write_text(html.unescape(program).replace("timeout_s=10", "timeout_s=3"))
    running = await asyncio.create_subprocess_exec(sys.executable, tmp_path / "demo.py", stdout=subprocess.PIPE)
    said, _ = await asyncio.wait_for(running.communicate(), 2 * WITHIN_S)
    assert running.returncode == 0 and b"SEND_OK" in said and b"got b'hello'" in said


async def test_the_page_has_programs_for_clients_of_rocketmq_5_with_the_endpoint_that_is_served(
    gateway: Gateway, log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await log_in(Role.READER)
    served = dataclasses.replace(settings.APPLIANCE, attach="", advertise="10.1.2.3", proxies=2, proxy_port=18081)
    monkeypatch.setattr(settings, "APPLIANCE", served)
    for language, word in (
        ("java", "enableSsl(false)"),
        ("go", "NewSimpleConsumer"),
        ("node", "nodejs"),
        ("python", "rocketmq"),
    ):
        page = (await reader.get("/connect", {"lang": language, "protocol": "5"})).content.decode()
        program = program_of(page)
        assert word in program and "10.1.2.3:18081;10.1.2.3:18082" in program
        assert "ACCESS-KEY" not in program and "demo-readers" not in program, "it pulls: mixing is refused"
    ast.parse(html.unescape(program))
    monkeypatch.setattr(settings, "APPLIANCE", dataclasses.replace(served, accounts=True))
    for language in ("java", "go", "node", "python"):
        assert "ACCESS-KEY" in (await reader.get("/connect", {"lang": language, "protocol": "5"})).content.decode()
    monkeypatch.setattr(settings, "APPLIANCE", dataclasses.replace(served, proxies=0))
    page = (await reader.get("/connect", {"protocol": "5"})).content.decode()
    assert "gantry up --proxies 1" in page and 'id="program"' not in page


async def test_a_message_sent_from_here_moves_the_ticks(
    cluster: ServingCluster, gateway: Gateway, log_in: Client
) -> None:
    client_book.clear()
    await Sampler(gateway).sample()
    operator = await log_in(Role.OPERATOR)
    for _ in range(2):  # the first one makes the topic
        answer = await operator.post("/connect/send", follow=True)
        assert "Sent to demo" in answer.content.decode()
    assert (await gateway.topics.get("demo")).put_total >= 2
    entry = await AuditEntry.objects.filter(action="message sent", target="demo").afirst()
    assert entry is not None and entry.who == "operator"
    api = await api_for(await User.objects.aget(username="reader"), "read")
    async with Producer(cluster.namesrv_address, group="connect-makers") as producer:
        await producer.send(Message("demo", b"x"))

        async def is_seen() -> bool:
            client_book.forget()
            return any(one.client_id == producer.client_id for one in (await client_book.listing(gateway)).named)

        await until(is_seen)
        part = (await operator.get("/connect", headers={"HX-Target": "ticks"})).content.decode()
        assert part.count("is-done") >= 3 and 'data-shape="111' in part
        status, told = await api.call("get", "/connect?error=broker+busy")

    async def is_gone() -> bool:
        return not await is_seen()

    await until(is_gone)
    gone = (await operator.get("/connect", headers={"HX-Target": "ticks"})).content.decode()
    assert 'data-shape="111' in gone, "what a producer has sent stays when it goes"
    assert status == 200 and [tick["is_done"] for tick in told["ticks"][:3]] == [True, True, True]
    assert told["meanings"] and {one["title"] for one in told["checks"]} >= {"Name server", "Address of broker-a"}
