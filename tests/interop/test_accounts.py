"""Access control with the official clients: theirs against our broker, ours against Apache's."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.bench.peer import Peer
from gantrymq import AdminClient, ConsumeFrom, Credentials, Message, MessageExt, Producer, PushConsumer
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import RequestCode
from tests.harness import LocalCluster
from tests.interop.accounts import ADMIN, LOW, RIGHT, accounts_at, launched
from tests.interop.clients import JavaClient
from tests.interop.mqadmin.session import TOOLS_OF_THE_PEER, MqAdminSession
from tests.peers.fixtures import make_apache_peer
from tests.waiting import WITHIN_S

EVERYTHING = {f"body-{number}" for number in range(5)}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Our broker, asking for accounts."""
    home = tmp_path_factory.mktemp("guarded")
    accounts_at(home)
    settings = {"aclEnable": "true", "rocketmqHome": str(home), "messageDelayLevel": "1s 1s 1s 1s"}
    yield from launched(LocalCluster(home, broker_properties=settings))


@pytest.fixture(scope="module")
def guarded_apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """Apache's broker, asking for accounts."""
    home = tmp_path_factory.mktemp("guarded-apache")
    accounts_at(home)
    yield from launched(make_apache_peer(home, heap="1g", broker_properties={"aclEnable": "true"}))


# -- Java's client, our broker ----------------------------------------------------------------------------------------


Outcome = tuple[dict[str, str], str]  # what worked, with its outcome, and the words of the refusal of the first send


def java_sends(java: JavaClient, peer: Peer, *wishes: tuple[str, Credentials | None]) -> list[Outcome]:
    """Send to each topic with each account, one after the other in one program."""
    fields: list[str] = []
    for topic, account in wishes:
        fields += [topic, *((account.access_key, account.secret_key) if account else ("-", "-"))]
    with java.run("Acl", peer.namesrv_address, "send", fields[0], "SomeProducers", *fields[1:]) as program:
        program.wait_done()
    outcomes = []
    for turn in range(len(wishes)):
        refused = {line[1]: " ".join(line[2:]) for line in program.lines("REFUSED") if line[0] == str(turn)}
        worked = {line[1]: line[2] for line in program.lines("OK") if line[0] == str(turn)}
        outcomes.append((worked, refused.get("single", "")))
    return outcomes


def test_a_java_client_with_the_right_account_sends_consumes_and_looks_up(java: JavaClient, guarded: Peer) -> None:
    keys = (RIGHT.access_key, RIGHT.secret_key)
    ((worked, refusal),) = java_sends(java, guarded, ("TopicX", RIGHT))
    assert refusal == ""
    assert worked == {"single": "SEND_OK", "batch": "SEND_OK", "oneway": "SENT", "byKey": "FOUND1", "byId": "body-0"}
    with java.run("Acl", guarded.namesrv_address, "consume", "TopicX", "GroupX", *keys) as consumer:
        consumer.wait_for(lambda: {line[0] for line in consumer.lines("BODY")} == EVERYTHING, "all messages")
        # body-0 was given back (36) and comes again from the retry topic
        consumer.wait_for(lambda: ["body-0", "1"] in consumer.lines("BODY"), "the message given back")


REFUSED = {
    "no account": ("TopicX", None, "No accessKey is configured"),
    "wrong secret": (
        "TopicX",
        Credentials("rightKey1", "wrongSecret"),
        "Check signature failed for accessKey=rightKey1",
    ),
    "unknown account": (
        "TopicX",
        Credentials("nobodyKey", "nobodySecret"),
        "Check signature failed for accessKey=nobodyKey",
    ),
    "no permission": ("TopicX", LOW, "No default permission for topic:TopicX"),
    "another topic": ("TopicOther", RIGHT, "No default permission for topic:TopicOther"),
}


@pytest.fixture(scope="module")
def refusals(java: JavaClient, guarded: Peer) -> dict[str, Outcome]:
    """What came of each wish that has to be refused."""
    outcomes = java_sends(java, guarded, *((topic, account) for topic, account, _ in REFUSED.values()))
    return dict(zip(REFUSED, outcomes, strict=True))


@pytest.mark.parametrize("why", REFUSED)
def test_a_java_client_is_told_why_it_may_not_send(refusals: dict[str, Outcome], why: str) -> None:
    worked, refusal = refusals[why]
    assert set(worked) <= {"oneway"}  # that one is never told anything
    assert refusal.startswith("16 org.apache.rocketmq.acl.common.AclException: ") and REFUSED[why][2] in refusal


def test_a_java_consumer_without_the_group_gets_nothing(java: JavaClient, guarded: Peer) -> None:
    java_sends(java, guarded, ("TopicX", RIGHT))
    keys = (LOW.access_key, LOW.secret_key)  # may read the topic, belongs to no group
    with java.run("Acl", guarded.namesrv_address, "consume", "TopicX", "GroupX", *keys) as consumer:
        consumer.wait_started()
        time.sleep(4)  # nothing may come within several of its pulls
    assert consumer.lines("BODY") == []


# -- mqadmin, our broker ----------------------------------------------------------------------------------------------


def test_mqadmins_account_commands_work_and_show_no_secret(
    mqadmin_session: MqAdminSession, guarded: Peer, tmp_path: Path
) -> None:
    where = ("-n", guarded.namesrv_address, "-b", guarded.broker_address)
    assert "CODE: 16" in mqadmin_session.run("getAclConfig", *where).text
    with MqAdminSession(tmp_path, TOOLS_OF_THE_PEER) as tool:
        tool.sign_with(ADMIN.access_key, ADMIN.secret_key)
        _manage_accounts(tool, where)


def _manage_accounts(tool: MqAdminSession, where: tuple[str, ...]) -> None:
    account = ("-a", "newUserKey", "-s", "newUserSecret", "-i", "DENY", "-t", "topicA=PUB|SUB")
    made = tool.run("updateAclConfig", *where, *account).text
    assert "create or update plain access config" in made, made
    shown = tool.run("getAclConfig", *where).text
    assert re.search(r"accessKey\s+: newUserKey", shown) and "topicA=PUB|SUB" in shown, shown
    assert "newUserSecret" not in shown and "adminSecret1" not in shown
    refused = tool.run("updateAclConfig", *where, "-a", "abc", "-s", "def").text
    assert "CODE: 209" in refused and "length should longer than 6" in refused, refused
    version = tool.run("clusterAclConfigVersion", *where).text
    assert "get broker's plain access config version success." in version, version
    white = tool.run("updateGlobalWhiteAddr", *where, "-g", "10.10.103.*,192.168.0.*").text
    assert "success" in white, white
    deleted = tool.run("deleteAclConfig", *where, "-a", "newUserKey").text
    assert "success" in deleted, deleted
    shown = tool.run("getAclConfig", *where).text
    assert "newUserKey" not in shown and "192.168.0.*" in shown


# -- our client, Apache's broker --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["guarded", "guarded_apache"])
def test_our_client_signs_as_both_brokers_want_it(make: str, request: pytest.FixtureRequest) -> None:
    # A broker ends with the thread that started it, and is there for the whole module: so not in a loop's thread.
    asyncio.run(_sign_and_consume(request.getfixturevalue(make)))


async def _sign_and_consume(peer: Peer) -> None:
    namesrv = peer.namesrv_address
    wanted = {b"%d" % number for number in range(5)}
    got: set[bytes] = set()

    async def listener(messages: list[MessageExt]) -> None:
        got.update(message.body for message in messages)

    async with AdminClient(namesrv, credentials=ADMIN) as admin:
        assert b"aclEnable=true" in (await admin.calls.call(peer.broker_address, RequestCode.GET_BROKER_CONFIG)).body
        with pytest.raises(GantryError, match="Need admin permission"):
            async with AdminClient(namesrv, credentials=RIGHT) as low:
                await low.calls.call(peer.broker_address, RequestCode.UPDATE_BROKER_CONFIG, {}, b"a=b")
    async with Producer(namesrv, group="pg", credentials=RIGHT) as producer:
        for body in wanted:
            await producer.send(Message("TopicX", body))
    for account in (None, LOW, Credentials("rightKey1", "wrongSecret")):
        async with Producer(namesrv, group="pg", credentials=account, retries=0) as producer:
            with pytest.raises(GantryError, match="AclException"):
                await producer.send(Message("TopicX", b"never"))
    consumer = PushConsumer(
        namesrv, group="GroupX", listener=listener, consume_from=ConsumeFrom.FIRST_OFFSET, credentials=RIGHT
    )
    consumer.subscribe("TopicX")
    async with consumer, asyncio.timeout(WITHIN_S):
        while not wanted <= got:
            await asyncio.sleep(0.1)
    assert b"never" not in got
