"""A broker with aclEnable on real sockets: the holes that a table alone doesn't show."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.acl.access import account_name
from appliance.bench.processes import free_ports
from appliance.broker.controller import BrokerController
from appliance.settings.roles import BrokerConfig
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.message.record import decode_record
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import ROCKETMQ, RemotingCommand
from gantrymq.remoting.signature import Credentials
from store.base.config import MessageStoreConfig
from tests.appliance.acl.cluster import (
    ADMIN,
    LOW,
    OPEN,
    PLAIN_ACL,
    RIGHT,
    WRONG,
    SignedPeer,
    accounts_file,
    guarded,
    is_denied,
    send_fields,
    sent,
    signed_peer,
)
from tests.harness import SMALL_STORE, ServingCluster
from tests.waiting import until

PULL = {
    "queueId": "0",
    "queueOffset": "0",
    "maxMsgNums": "32",
    "sysFlag": "4",
    "commitOffset": "0",
    "suspendTimeoutMillis": "1000",
    "subscription": "*",
    "subVersion": "0",
    "expressionType": "TAG",
}


def pull(topic: str, group: str) -> dict[str, str]:
    return PULL | {"topic": topic, "consumerGroup": group}


async def test_sends_of_every_shape_are_checked(tmp_path: Path) -> None:
    """S39."""
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        batch = encode_batch([Message("TopicX", b"one"), Message("TopicX", b"two")])
        shapes = [
            (RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body"),
            (RequestCode.SEND_BATCH_MESSAGE, send_fields("TopicX") | {"m": "true"}, batch),
            (RequestCode.SEND_MESSAGE, long_names("TopicX"), b"body"),
        ]
        for code, fields, body in shapes:
            assert (await peer.ask(RIGHT, code, fields, body)).code == 0
            for account in (WRONG, LOW, None, OPEN):  # WRONG right after RIGHT, whose name it has
                assert is_denied(await peer.ask(account, code, fields, body)), (code, account)
            for account in (RIGHT, LOW):
                request = RemotingCommand.request(code, dict(fields), body, serialize_type=ROCKETMQ)
                account.sign(request, peer.stamper)
                assert is_denied(await peer.send(request)) is (account is LOW)
        assert cluster.broker.store.max_offset("TopicX", 0) == 8


def long_names(topic: str) -> dict[str, str]:
    short = send_fields(topic)
    names = {
        "a": "producerGroup",
        "b": "topic",
        "c": "defaultTopic",
        "d": "defaultTopicQueueNums",
        "e": "queueId",
        "f": "sysFlag",
        "g": "bornTimestamp",
        "h": "flag",
        "i": "properties",
        "j": "reconsumeTimes",
        "k": "unitMode",
        "m": "batch",
    }
    return {names[name]: value for name, value in short.items()}


async def test_a_send_that_names_two_topics_needs_both(tmp_path: Path) -> None:
    """The handler takes one of them; which one is nobody's business to guess."""
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        for code in (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2):
            mixed = send_fields("TopicX") | long_names("TopicLow")
            assert is_denied(await peer.ask(LOW, code, mixed, b"body"))
            mixed = send_fields("TopicLow") | long_names("TopicX")
            assert is_denied(await peer.ask(LOW, code, mixed, b"body"))


async def test_a_body_or_field_changed_on_the_way_is_refused(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        for change in ("body", "topic", "extra"):
            request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body")
            RIGHT.sign(request, peer.stamper)
            if change == "body":
                request.body = b"Body"
            elif change == "topic":
                request.ext_fields["b"] = "TopicLow"
            else:
                request.ext_fields["zz"] = "more"
            assert is_denied(await peer.send(request))


async def test_messages_of_a_topic_can_not_be_had_by_a_back_door(tmp_path: Path) -> None:
    """S40."""
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        plain = await sent(peer, RIGHT, "TopicX", KEYS="key1", UNIQ_KEY="unique1")
        delayed = await sent(peer, RIGHT, "TopicX", DELAY="18")
        own = await sent(peer, LOW, "TopicLow")
        cluster.broker.groups.get("GroupLow")
        doors = [
            (RequestCode.PULL_MESSAGE, pull("TopicX", "GroupLow")),
            (RequestCode.LITE_PULL_MESSAGE, pull("TopicX", "GroupLow")),
            (RequestCode.PULL_MESSAGE, pull("TopicLow", "GroupX")),
            (RequestCode.PULL_MESSAGE, pull("%RETRY%GroupX", "GroupLow")),
            (RequestCode.PULL_MESSAGE, pull("%DLQ%GroupX", "GroupLow")),
            (RequestCode.PULL_MESSAGE, pull("SCHEDULE_TOPIC_XXXX", "GroupLow")),
            (RequestCode.PULL_MESSAGE, pull("RMQ_SYS_TRANS_HALF_TOPIC", "GroupLow")),
            (RequestCode.PULL_MESSAGE, pull("RMQ_SYS_TRACE_TOPIC", "GroupLow")),
            (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(plain)}),
            (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(delayed)}),
            (RequestCode.CONSUMER_SEND_MSG_BACK, {"offset": str(plain), "group": "GroupLow", "delayLevel": "1"}),
            (RequestCode.CONSUMER_SEND_MSG_BACK, {"offset": str(own), "group": "GroupX", "delayLevel": "1"}),
            (RequestCode.END_TRANSACTION, {"commitLogOffset": str(plain), "producerGroup": "PG"}),
            (
                RequestCode.QUERY_MESSAGE,
                {"topic": "TopicX", "key": "key1", "maxNum": "9", "beginTimestamp": "0", "endTimestamp": str(1 << 62)},
            ),
            (RequestCode.SEND_MESSAGE_V2, send_fields("%RETRY%GroupX")),
            (RequestCode.SEND_MESSAGE_V2, send_fields("TopicLow", INNER_MULTI_DISPATCH="%LMQ%one,TopicX")),
        ]
        for account in (LOW, OPEN):
            for code, fields in doors:
                if account is OPEN and is_open_to_default_sub(code, fields):
                    continue
                answer = await peer.ask(account, code, fields, b"body")
                assert is_denied(answer), (account, code, fields, answer)
        assert (await peer.ask(RIGHT, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(plain)})).code == 0
        answer = await peer.ask(RIGHT, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(delayed)})
        assert decode_record(answer.body).topic == "SCHEDULE_TOPIC_XXXX"
        assert (await peer.ask(LOW, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(own)})).code == 0


def is_open_to_default_sub(code: int, fields: dict[str, str]) -> bool:
    """What an account may do that has SUB on all topics and groups but TopicX."""
    names = {fields.get("topic", ""), fields.get("group", ""), fields.get("consumerGroup", "")}
    is_pull = code in (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
    if is_pull and not names & {"TopicX", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC"}:
        return True
    return fields.get("b", "").startswith("%RETRY%") or (
        code == RequestCode.CONSUMER_SEND_MSG_BACK and "GroupX" in names
    )


async def test_who_ends_a_transaction_may_send_to_its_topic(tmp_path: Path) -> None:
    """S39."""
    half = {"TRAN_MSG": "true", "PGROUP": "PG"}
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        for topic, is_allowed in (("TopicSubOnly", False), ("TopicX", True)):
            answer = await peer.ask(ADMIN, RequestCode.SEND_MESSAGE_V2, send_fields(topic, **half), b"body")
            end = {
                "producerGroup": "PG",
                "tranStateTableOffset": answer.ext_fields["queueOffset"],
                "commitLogOffset": str(int(answer.ext_fields["msgId"][16:], 16)),
                "commitOrRollback": "8",
            }
            ended = await peer.ask(RIGHT, RequestCode.END_TRANSACTION, end)
            assert is_denied(ended) is not is_allowed, (topic, ended)
            assert cluster.broker.store.max_offset(topic, 0) == is_allowed


@pytest.mark.parametrize(
    ("code", "change", "account"),
    [
        (RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, {"accessKey": "rightKey1", "topicPerms": "TopicX=PUB"}, RIGHT),
        (RequestCode.DELETE_ACL_CONFIG, {"accessKey": "rightKey1"}, RIGHT),
        (RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, {"globalWhiteAddrs": "10.9.9.9"}, None),
    ],
    ids=["what the account may", "the account", "the freedom of its address"],
)
async def test_a_pull_that_waits_ends_with_what_allowed_it(
    tmp_path: Path, code: RequestCode, change: dict[str, str], account: Credentials | None
) -> None:
    waiting = pull("TopicX", "GroupX") | {"sysFlag": "6", "suspendTimeoutMillis": "600000", "queueOffset": "1"}
    accounts = PLAIN_ACL if account is not None else PLAIN_ACL.replace("10.9.9.*", "127.0.0.1")
    async with (
        guarded(tmp_path, accounts) as cluster,
        signed_peer(cluster.broker.port) as reader,
        signed_peer(cluster.broker.port) as writer,
    ):
        await sent(writer, ADMIN, "TopicX")
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, waiting)
        if account is not None:
            account.sign(request, reader.stamper)
        reader.peer.write(request.encode())
        await until(lambda: cluster.broker.hold.held_count == 1)
        assert (await writer.ask(ADMIN, code, change)).code == 0
        await sent(writer, ADMIN, "TopicX")
        answer = await reader.peer.read()
        assert (answer.code, answer.body) == (16, b"")


async def test_a_heartbeat_joins_no_group_and_topic_that_the_account_has_not(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        for group, topic, expected in (
            ("GroupX", "TopicX", False),
            ("GroupX", "TopicLow", False),
            ("GroupLow", "TopicX", False),
            ("GroupLow", "%RETRY%GroupX", False),
            ("GroupLow", "TopicLow", True),
        ):
            subscription = SubscriptionData(topic=topic)
            beat = HeartbeatData("c", [], [ConsumerData(group, subscription_data_set=[subscription])]).to_json()
            request = RemotingCommand.request(RequestCode.HEART_BEAT, {}, beat)
            LOW.sign(request, peer.stamper)
            peer.peer.write(request.encode())
            answer = await peer.peer.read()
            while answer.opaque != request.opaque or not answer.is_response:  # 40 comes beside it
                answer = await peer.peer.read()
            assert is_denied(answer) is not expected, (group, topic, answer)
        assert cluster.broker.consumers.get("GroupX") is None


@contextlib.asynccontextmanager
async def overheard(folder: Path) -> AsyncIterator[tuple[ServingCluster, SignedPeer, SignedPeer, RemotingCommand]]:
    """A cluster, who sent a request there, another who saw it, and the request."""
    async with (
        guarded(folder) as cluster,
        signed_peer(cluster.broker.port) as peer,
        signed_peer(cluster.broker.port) as thief,
    ):
        request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body")
        RIGHT.sign(request, peer.stamper)
        assert (await peer.send(request)).code == 0
        yield cluster, peer, thief, request


async def test_a_request_that_somebody_saw_can_not_be_sent_again(tmp_path: Path) -> None:
    """S38."""
    async with overheard(tmp_path) as (cluster, peer, thief, request):
        assert is_denied(await peer.send(request))
        assert is_denied(await thief.send(request))
        request.code = RequestCode.SEND_BATCH_MESSAGE
        assert is_denied(await thief.send(request))
        del request.ext_fields["RequestStamp"]
        assert is_denied(await thief.send(request))
        assert cluster.broker.store.max_offset("TopicX", 0) == 1
        access = cluster.broker.access
        assert access is not None and access.denied["replayed"] == 3 and access.unstamped == 0


async def test_a_stamp_does_not_go_away_by_another_name(tmp_path: Path) -> None:
    """The signature covers values in the order of their names: renamed or cut in two, a stamp keeps it right."""
    async with overheard(tmp_path) as (cluster, _peer, thief, request):
        fields = dict(request.ext_fields)
        stamp = fields.pop("RequestStamp")
        hidden = [
            {**fields, "RequestStamq": stamp},
            {**fields, "Ra": stamp[:5], "Rb": stamp[5:20], "Rc": stamp[20:]},
            {**fields, "a": stamp + fields["a"]},
            {**fields, "AAA": "", "Rx": stamp},
        ]
        for shape in hidden:
            request.ext_fields = shape
            answer = await thief.send(request)
            assert is_denied(answer) and "stamp is hidden" in (answer.remark or ""), answer
        assert cluster.broker.store.max_offset("TopicX", 0) == 1


async def test_clients_without_stamps_are_served_unless_a_setting_or_the_account_says_no(tmp_path: Path) -> None:
    """S38."""
    java = Credentials("rightKey1", "rightSecret1", stamped=False)
    strict = "accounts: [{accessKey: rightKey1, secretKey: rightSecret1, topicPerms: [TopicX=PUB], requireStamp: true}]"
    cases: list[tuple[str, dict[str, bool], int]] = [
        (PLAIN_ACL, {}, 0),
        (PLAIN_ACL, {"acl_require_stamp": True}, 16),
        (strict, {}, 16),
        (strict.replace("requireStamp: true", "requireStamp: false"), {"acl_require_stamp": True}, 0),
    ]
    for number, (text, settings, expected) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        async with guarded(folder, text, **settings) as cluster, signed_peer(cluster.broker.port) as peer:
            answer = await peer.ask(java, RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body")
            assert answer.code == expected, answer
            stamped = await peer.ask(RIGHT, RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body")
            assert stamped.code == 0


async def test_a_refused_one_way_request_gets_no_answer_and_does_nothing(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster, signed_peer(cluster.broker.port) as peer:
        request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body").mark_oneway()
        LOW.sign(request, peer.stamper)
        peer.peer.write(request.encode())
        assert (await peer.ask(RIGHT, RequestCode.GET_MAX_OFFSET, {"topic": "TopicX", "queueId": "0"})).code == 0
        assert cluster.broker.store.max_offset("TopicX", 0) == 0


async def test_the_vip_port_is_no_second_door(tmp_path: Path) -> None:
    port = free_ports(1, -2)
    accounts_file(tmp_path)
    config = BrokerConfig(listen_port=port, acl_enable=True, rocketmq_home=tmp_path)
    async with (
        BrokerController(config, MessageStoreConfig(root=tmp_path / "store", **SMALL_STORE)),
        signed_peer(port - 2) as peer,
    ):
        for account, expected in ((None, 16), (LOW, 16), (RIGHT, 0)):
            answer = await peer.ask(account, RequestCode.SEND_MESSAGE_V2, send_fields("TopicX"), b"body")
            assert answer.code == expected


async def heartbeat(peer: SignedPeer, account: Credentials, client_id: str, group: str) -> None:
    beat = HeartbeatData(client_id, [ProducerData(group)], []).to_json()
    answer = await peer.ask(account, RequestCode.HEART_BEAT, {}, beat)
    assert answer.code == 0, answer.remark


async def test_who_claims_a_producers_group_or_client_id_is_told_nothing_by_it(tmp_path: Path) -> None:
    """Half messages go to a group's producers (39), replies to a client id (326): anybody can name either."""
    async with (
        guarded(tmp_path) as cluster,
        signed_peer(cluster.broker.port) as honest,
        signed_peer(cluster.broker.port) as rogue,
    ):
        producers = cluster.broker.producers
        await heartbeat(rogue, LOW, "other-client", "PaymentProducers")
        assert producers.pick("PaymentProducers", "TopicX") is None
        await heartbeat(honest, RIGHT, "the-client", "PaymentProducers")
        await heartbeat(rogue, LOW, "the-client", "PaymentProducers")
        for _ in range(4):
            member = producers.pick("PaymentProducers", "TopicX")
            assert member is not None and account_name(member.connection) == "rightKey1"
        connection = producers.connection_of("the-client")
        assert connection is not None and account_name(connection) == "rightKey1"
