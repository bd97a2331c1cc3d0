"""A proxy in front of a broker that requires accounts: calls are signed, and an account may do what it may there."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpclib.exceptions import GRPCError

from appliance.acl import account_book
from appliance.proxy import receiving
from appliance.proxy.protocol.definition_pb2 import Broker, ClientType, Code, MessageQueue, Resource, Settings
from gantrymq import AdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.signature import Credentials
from tests.appliance.acl.cluster import ADMIN, LOW, PLAIN_ACL, RIGHT, UNKNOWN, WRONG, accounts_file
from tests.appliance.proxy.proxies import ENDPOINTS, ProxyClient, ProxyCluster, proxied
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("door")

STAMP, OTHER_STAMP = "20260102T030405Z", "20260102T030406Z"
TOPIC, GROUP = Resource(name="TopicX"), Resource(name="GroupX")
QUEUE = MessageQueue(topic=TOPIC, id=-1, broker=Broker(name="broker-a", id=0, endpoints=ENDPOINTS))
ENTRY = {"message_id": "x", "receipt_handle": "x"}
CALLS = {
    "QueryRoute": {"topic": TOPIC, "endpoints": ENDPOINTS},
    "QueryAssignment": {"topic": TOPIC, "group": GROUP, "endpoints": ENDPOINTS},
    "Heartbeat": {"group": GROUP, "client_type": ClientType.PUSH_CONSUMER},
    "AckMessage": {"group": GROUP, "topic": TOPIC, "entries": [ENTRY]},
    "ChangeInvisibleDuration": {"group": GROUP, "topic": TOPIC, "receipt_handle": "x"},
    "ForwardMessageToDeadLetterQueue": {"group": GROUP, "topic": TOPIC, "receipt_handle": "x", "message_id": "x"},
    "EndTransaction": {"topic": TOPIC, "message_id": "x", "transaction_id": "x"},
    "NotifyClientTermination": {"group": GROUP},
    "RecallMessage": {"topic": TOPIC, "recall_handle": "x"},
}


def signed(account: Credentials, stamp: str = STAMP, *, algorithm: str = "MQv2-HMAC-SHA1") -> dict[str, str]:
    """The two headers that RocketMQ 5's Go client would write at that time."""
    signature = hmac.digest(account.secret_key.encode(), stamp.encode(), "sha1").hex()
    words = f"{algorithm} Credential={account.access_key}//Rocketmq, SignedHeaders=x-mq-date-time"
    return {"x-mq-date-time": stamp, "authorization": f"{words}, Signature={signature}"}


NOT_SIGNED = {
    "nothing": {},
    "another secret": signed(WRONG),
    "an unknown account": signed(UNKNOWN),
    "of another moment": {**signed(RIGHT, OTHER_STAMP), "x-mq-date-time": STAMP},
    "of no moment": {"authorization": signed(RIGHT, "")["authorization"]},
    "another algorithm": signed(RIGHT, algorithm="MQv1-HMAC-SHA1"),
    "no signature": {**signed(RIGHT), "authorization": "MQv2-HMAC-SHA1 Credential=rightKey1"},
    "no characters of ASCII": {**signed(RIGHT), "authorization": "MQv2-HMAC-SHA1 Credential=rightKey1, Signature=%FF"},
}


@contextlib.asynccontextmanager
async def guarded(folder: Path, text: str = PLAIN_ACL) -> AsyncIterator[ProxyCluster]:
    """With TopicX, TopicSubOnly and TopicLow."""
    accounts_file(folder, text)
    settings = {"acl_enable": True, "rocketmq_home": folder}
    async with proxied(folder, broker=settings, **settings) as cluster:
        async with AdminClient(cluster.cluster.namesrv_address, credentials=ADMIN) as admin:
            for name in ("TopicX", "TopicSubOnly", "TopicLow"):
                await admin.topics.create(TopicConfig(name, 1, 1))
        yield cluster


async def sent(port: int, topic: str, headers: dict[str, str]) -> Code:
    client = ProxyClient(port, headers=headers)
    try:
        answer = await client.call("SendMessage", messages=[client.message(topic)])
    finally:
        client.channel.close()
    code: Code = answer.status.code
    return code


async def test_an_account_sends_where_it_may_and_nowhere_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        codes = {
            (account.access_key, topic): await sent(cluster.proxy.port, topic, signed(account))
            for account in (RIGHT, LOW, ADMIN)
            for topic in ("TopicX", "TopicSubOnly", "TopicLow")
        }
    allowed = {("rightKey1", "TopicX"), ("lowKey123", "TopicLow")} | {each for each in codes if each[0] == "adminKey1"}
    assert {each for each, code in codes.items() if code == Code.OK} == allowed
    assert {code for each, code in codes.items() if each not in allowed} == {Code.UNAUTHORIZED}


@pytest.mark.parametrize("headers", NOT_SIGNED.values(), ids=NOT_SIGNED)
async def test_a_call_that_no_account_signed_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async with guarded(tmp_path) as cluster:
        client = ProxyClient(cluster.proxy.port, headers=headers)
        try:
            codes = {name: (await client.call(name, **fields)).status.code for name, fields in CALLS.items()}
            codes["SendMessage"] = await sent(cluster.proxy.port, "TopicX", headers)
            received = await client.answers("ReceiveMessage", group=GROUP, message_queue=QUEUE, batch_size=1)
            codes["ReceiveMessage"] = received[0].status.code
            with pytest.raises(GRPCError):
                async with client.telemetry(Settings(client_type=ClientType.PRODUCER)):
                    pass
        finally:
            client.channel.close()
        assert cluster.cluster.broker.store.max_offset("TopicX", 0) == 0
    assert set(codes.values()) == {Code.UNAUTHORIZED}, codes


async def test_a_group_is_for_its_members_alone(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        client = ProxyClient(cluster.proxy.port, headers=signed(RIGHT))
        try:
            wanted = {"message_queue": QUEUE, "batch_size": 1, "invisible_duration": {"seconds": 30}}
            for group, code in (("GroupX", Code.MESSAGE_NOT_FOUND), ("GroupLow", Code.UNAUTHORIZED)):
                found = await client.answers("ReceiveMessage", group=Resource(name=group), timeout_s=8, **wanted)
                assert found[0].status.code == code, group
        finally:
            client.channel.close()


async def test_a_broker_that_trusts_the_proxys_address_opens_nothing(tmp_path: Path) -> None:
    """Brokers let through what comes from a white list: the proxy asks for the account all the same."""
    async with guarded(tmp_path, PLAIN_ACL.replace("10.9.9.*", "127.0.0.*")) as cluster:
        assert await sent(cluster.proxy.port, "TopicX", {}) == Code.UNAUTHORIZED
        assert await sent(cluster.proxy.port, "TopicX", signed(LOW)) == Code.UNAUTHORIZED
        assert await sent(cluster.proxy.port, "TopicX", signed(RIGHT)) == Code.OK


async def test_the_session_of_a_deleted_account_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account_book, "MOMENT_S", -1.0)
    async with guarded(tmp_path) as cluster:
        for account, topic in ((RIGHT, "TopicX"), (LOW, "TopicLow")):
            assert await sent(cluster.proxy.port, topic, signed(account)) == Code.OK
        assert len(cluster.proxy.brokers) == 2
        accounts_file(tmp_path, PLAIN_ACL.replace("lowKey123", "newKey123"))
        new = Credentials("newKey123", "lowSecret123")

        async def is_read() -> bool:
            return await sent(cluster.proxy.port, "TopicLow", signed(new)) == Code.OK

        await until(is_read)
        assert len(cluster.proxy.brokers) == 2


async def test_a_receive_waits_on_while_its_account_is_missing_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some editors write a file in two steps."""
    monkeypatch.setattr(account_book, "MOMENT_S", 600.0)
    monkeypatch.setattr(receiving, "POLL_S_MAX", 600.0)
    async with guarded(tmp_path) as cluster:
        client, low = ProxyClient(cluster.proxy.port, headers=signed(LOW)), Resource(name="TopicLow")
        queue, lease = MessageQueue(topic=low, id=-1), {"seconds": 30}
        wanted = {"group": Resource(name="GroupLow"), "message_queue": queue, "invisible_duration": lease}
        receive = asyncio.create_task(client.answers("ReceiveMessage", timeout_s=900, batch_size=1, **wanted))

        async def is_missing() -> bool:
            answer = await client.call("QueryRoute", topic=low, endpoints=ENDPOINTS)
            return bool(answer.status.code == Code.UNAUTHORIZED)

        async def is_back() -> bool:
            return await sent(cluster.proxy.port, "TopicLow", signed(LOW)) == Code.OK

        try:
            await until(lambda: cluster.cluster.broker.pop.hold.count == 1)
            accounts_file(tmp_path, PLAIN_ACL.replace("lowKey123", "newKey123"))
            await until(is_missing)
            assert await sent(cluster.proxy.port, "TopicX", signed(RIGHT)) == Code.OK  # on a new session
            accounts_file(tmp_path)
            await until(is_back)
            found, message, *_ = await receive
            assert (found.status.code, message.message.body) == (Code.OK, b"hello")
        finally:
            receive.cancel()
            client.channel.close()
