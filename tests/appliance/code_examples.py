"""Every request code of a broker and a name server, by example: what is asked, and what a right answer is.

A row says in our own words: code, who serves it, the header fields with a right value each, the body, the code of the
right answer, its header fields, and the members of its JSON body. `wording` lists how SYSTEM_ERROR answers begin that
are the original's own part of the flow ("no such message", "not online" ...): whatever else is the client's mistake
is never answered with SYSTEM_ERROR. Values in braces are filled in by the scene (see test_every_code).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message, MessageQueue
from gantrymq.message.recall_handle import RecallHandle
from gantrymq.remoting import fastjson
from gantrymq.remoting.admin_bodies import DataVersion, SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import (
    CheckClientRequestBody,
    ConsumerData,
    HeartbeatData,
    LockBatchRequest,
    ProducerData,
    SubscriptionData,
)
from gantrymq.remoting.codes import RequestCode as Code
from gantrymq.remoting.codes import ResponseCode as Answer
from gantrymq.remoting.pop_bodies import BatchAck, BatchAckRequest, QueryAssignmentRequest, SetModeRequest
from tests.appliance.peer import registration

TOPIC, GROUP, CLIENT, PRODUCERS = "Codes", "CG_codes", "10.0.0.1@codes", "PG_codes"


@dataclass(frozen=True)
class Field:
    """A right value of a header field. is_lenient: it may be missing here, though RocketMQ's own class asks for it."""

    value: str
    is_number: bool = False
    is_required: bool = True
    is_lenient: bool = False


def text(value: str) -> Field:
    return Field(value)


def number(value: str | int) -> Field:
    return Field(str(value), is_number=True)


def maybe(value: str) -> Field:
    return Field(value, is_required=False)


def maybe_number(value: str | int) -> Field:
    return Field(str(value), is_number=True, is_required=False)


@dataclass(frozen=True)
class Example:
    """One row of the table. body_reader: "json", "text", "batch", "zlib", or None when the body is any bytes."""

    code: int
    role: str
    fields: dict[str, Field] = field(default_factory=dict)
    body: bytes = b""
    answers: tuple[int, ...] = (Answer.SUCCESS,)
    answer_fields: tuple[str, ...] = ()
    answer_body: tuple[str, ...] = ()  # members of the JSON object; empty: any body or none
    wording: tuple[str, ...] = ()
    body_reader: str | None = None
    needs_body: bool = False
    is_answered: bool = True  # one row is about a request that the original leaves unanswered


TOPIC_FIELD = {"topic": text(TOPIC)}
QUEUE = TOPIC_FIELD | {"queueId": number(0)}
GROUP_FIELD = {"consumerGroup": text(GROUP)}

SEND = {
    "producerGroup": maybe(PRODUCERS),
    "topic": text(TOPIC),
    "defaultTopic": maybe("TBW102"),
    "defaultTopicQueueNums": maybe_number(4),
    "queueId": number(0),
    "sysFlag": number(0),
    "bornTimestamp": number(1_700_000_000_000),
    "flag": number(0),
    "properties": maybe("KEYS\x01k1\x02WAIT\x01true\x02TAGS\x01TagA"),
    "reconsumeTimes": maybe_number(0),
    "unitMode": maybe("false"),
    "batch": maybe("false"),
    "maxReconsumeTimes": maybe_number(16),
}
SEND_SHORT = dict(zip("abcdefghijkml", SEND.values(), strict=True))
SENT = ("msgId", "queueId", "queueOffset", "MSG_REGION", "TRACE_ON")
BAD_QUEUE = "request queueId["  # RocketMQ's clients try another queue on code 1, and on nothing else that fits

PULL = {
    "consumerGroup": text(GROUP),
    "topic": text(TOPIC),
    "queueId": number(0),
    "queueOffset": number(0),
    "maxMsgNums": number(32),
    "sysFlag": number(4),
    "commitOffset": Field("0", is_number=False, is_lenient=True),
    "suspendTimeoutMillis": Field("100", is_number=False, is_lenient=True),
    "subscription": maybe("*"),
    "subVersion": Field("0", is_number=False, is_lenient=True),
    "expressionType": maybe("TAG"),
}
PULLED = ("suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset")
REPLIED = ("reply message properties[REPLY_TO_CLIENT] is null", "push reply message")
NOT_FOUND = ("can not find message by the offset",)
NOT_ONLINE = ("The Consumer <", "can not find message by the id", "the consumer group")

BATCH = encode_batch([Message(TOPIC, b"abc", properties={"KEYS": "v1"}), Message(TOPIC, b"def")])

HEARTBEAT = HeartbeatData(
    "10.0.0.2@beats",
    [ProducerData("PG_beats")],
    [ConsumerData("CG_beats", subscription_data_set=[SubscriptionData(TOPIC, sub_version=1)])],
).to_json()
LOCK = LockBatchRequest(GROUP, CLIENT, [MessageQueue(TOPIC, "broker-a", 0)]).to_json()
CHECK = CheckClientRequestBody(CLIENT, GROUP, SubscriptionData(TOPIC, "a > 1", expression_type="SQL92")).to_json()

NEW_TOPIC = {
    "topic": text("CodesNew"),
    "defaultTopic": maybe("TBW102"),
    "readQueueNums": number(2),
    "writeQueueNums": number(2),
    "perm": number(6),
    "topicFilterType": text("SINGLE_TAG"),
    "topicSysFlag": maybe_number(0),
    "order": maybe("false"),
}
ACL_OFF_50 = Answer.UPDATE_AND_CREATE_ACL_CONFIG_FAILED
ACL_OFF_51 = Answer.DELETE_ACL_CONFIG_FAILED
ACL_OFF_53 = Answer.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED
ACL_OFF = ("broker ",)

POP = {
    "consumerGroup": text("CG_pop"),
    "topic": text(TOPIC),
    "queueId": number(-1),
    "maxMsgNums": number(32),
    "invisibleTime": number(60_000),
    "pollTime": number(0),
    "initMode": maybe_number(1),
    "expType": maybe("TAG"),
    "exp": maybe("*"),
    "order": maybe("false"),
    "attemptId": maybe("a1"),
}
NOTIFY = {name: POP[name] for name in ("consumerGroup", "topic", "queueId", "pollTime", "expType", "exp")}
LEASE = {
    "consumerGroup": text("CG_pop"),
    "topic": text(TOPIC),
    "queueId": number(0),
    "offset": number(0),
    "extraInfo": text("0 1700000000000 60000 0 0 broker-a 0 0"),
}
NO_FILTER = ("The broker does not support consumer to filter message",)
LEASE_ENDED = (Answer.NO_MESSAGE,)  # rows with leases are in tests/appliance/broker/pop
ACKS = BatchAckRequest(
    "broker-a", [BatchAck("CG_pop", TOPIC, pop_time=1_700_000_000_000, invisible_time=60_000, bit_set="AQ==")]
).to_json()
ASSIGNMENT = QueryAssignmentRequest(TOPIC, GROUP, CLIENT, "AVG").to_json()
MODE = SetModeRequest(TOPIC, "CG_pop", "POP").to_json()

RECALL = str(RecallHandle(TOPIC, "broker-a", int(time.time() * 1000) + 24 * 3600 * 1000, "7F000001"))

BROKER = [
    Example(
        Code.SEND_MESSAGE, "broker", SEND, b"hello", answer_fields=SENT,
        answers=(0, Answer.MESSAGE_ILLEGAL, Answer.TOPIC_NOT_EXIST), wording=(BAD_QUEUE,),
    ),
    Example(
        Code.SEND_MESSAGE_V2, "broker", SEND_SHORT, b"hello", answer_fields=SENT, wording=(BAD_QUEUE,),
    ),
    Example(
        Code.SEND_BATCH_MESSAGE, "broker", SEND_SHORT | {"m": maybe("true")}, BATCH, answer_fields=SENT,
        wording=(BAD_QUEUE,), body_reader="batch",
    ),
    Example(Code.SEND_REPLY_MESSAGE, "broker", SEND, b"reply", (Answer.SYSTEM_ERROR,), wording=(*REPLIED, BAD_QUEUE)),
    Example(
        Code.SEND_REPLY_MESSAGE_V2, "broker", SEND_SHORT, b"reply", (Answer.SYSTEM_ERROR,),
        wording=(*REPLIED, BAD_QUEUE),
    ),
    Example(
        Code.CONSUMER_SEND_MSG_BACK, "broker",
        {"offset": number("{offset}"), "group": text(GROUP), "delayLevel": maybe_number(0),
         "originMsgId": maybe("x"), "originTopic": maybe(TOPIC), "unitMode": maybe("false"),
         "maxReconsumeTimes": maybe_number(16), "consumeError": maybe("shop.OutOfStock at orders.py:42"),
         "consumeErrorText": maybe("OutOfStock: none left")},
        wording=("look message by offset failed",),
    ),
    Example(
        Code.RECALL_MESSAGE, "broker",
        {"topic": text(TOPIC), "recallHandle": text(RECALL), "producerGroup": maybe(PRODUCERS)},
        answer_fields=("msgId", "MSG_REGION"),
    ),
    Example(
        Code.END_TRANSACTION, "broker",
        {"producerGroup": text(PRODUCERS), "tranStateTableOffset": number("{half_queue_offset}"),
         "commitLogOffset": number("{half_offset}"), "commitOrRollback": number(8),
         "fromTransactionCheck": maybe("false"), "msgId": maybe("x"), "transactionId": maybe("x")},
        wording=("Find prepared", "The producer group wrong", "The transaction state", "The commit log offset"),
    ),
    Example(
        Code.PULL_MESSAGE, "broker", PULL, answer_fields=PULLED,
        wording=("queueId[",),
    ),
    Example(Code.LITE_PULL_MESSAGE, "broker", PULL, answer_fields=PULLED, wording=("queueId[",)),
    Example(Code.POP_MESSAGE, "broker", POP, answers=(0, Answer.POLLING_TIMEOUT), wording=NO_FILTER),
    Example(Code.NOTIFICATION, "broker", NOTIFY, answer_fields=("hasMsg", "pollingFull"), wording=NO_FILTER),
    Example(Code.ACK_MESSAGE, "broker", LEASE, answers=LEASE_ENDED),
    Example(
        Code.CHANGE_MESSAGE_INVISIBLETIME, "broker", LEASE | {"invisibleTime": number(1000)}, answers=LEASE_ENDED
    ),
    Example(
        Code.BATCH_ACK_MESSAGE, "broker", {}, ACKS, answers=LEASE_ENDED, body_reader="json", needs_body=True
    ),
    Example(
        Code.QUERY_ASSIGNMENT, "broker", {}, ASSIGNMENT, answer_body=("messageQueueAssignments",),
        wording=("the route of topic",), body_reader="json", needs_body=True,
    ),
    Example(Code.SET_MESSAGE_REQUEST_MODE, "broker", {}, MODE, body_reader="json", needs_body=True),
    Example(
        Code.QUERY_MESSAGE, "broker",
        {"topic": text(TOPIC), "key": text("k1"), "maxNum": number(4), "beginTimestamp": number(0),
         "endTimestamp": number((1 << 63) - 1), "_UNIQUE_KEY_QUERY": maybe("false")},
        answer_fields=("indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"),
    ),
    Example(Code.VIEW_MESSAGE_BY_ID, "broker", {"offset": number("{offset}")}, wording=NOT_FOUND),
    Example(Code.HEART_BEAT, "broker", body=HEARTBEAT, body_reader="json", needs_body=True),
    Example(
        Code.UNREGISTER_CLIENT, "broker",
        {"clientID": maybe("10.0.0.9@nobody"), "producerGroup": maybe("PG_nobody"),
         "consumerGroup": maybe("CG_nobody")},
    ),
    Example(Code.CHECK_CLIENT_CONFIG, "broker", body=CHECK, body_reader="json"),
    Example(Code.QUERY_CONSUMER_OFFSET, "broker", GROUP_FIELD | QUEUE, answer_fields=("offset",)),
    Example(
        Code.UPDATE_CONSUMER_OFFSET, "broker",
        GROUP_FIELD | QUEUE | {"commitOffset": number(1), "onlyForward": maybe("true")},
    ),
    Example(
        Code.GET_CONSUMER_LIST_BY_GROUP, "broker", GROUP_FIELD, answer_body=("consumerIdList",),
        wording=("no consumer for this group",),
    ),
    Example(
        Code.LOCK_BATCH_MQ, "broker", body=LOCK, answer_body=("lockOKMQSet",), body_reader="json", needs_body=True
    ),
    Example(Code.UNLOCK_BATCH_MQ, "broker", body=LOCK, body_reader="json", needs_body=True),
    Example(Code.UPDATE_AND_CREATE_TOPIC, "broker", NEW_TOPIC),
    Example(
        Code.UPDATE_AND_CREATE_TOPIC_LIST, "broker",
        body=fastjson.dumps({"topicConfigList": [TopicConfig("CodesNew", 2, 2).to_dict()]}),
        body_reader="json", needs_body=True,
    ),
    Example(Code.GET_ALL_TOPIC_CONFIG, "broker", answer_body=("topicConfigTable", "dataVersion")),
    Example(Code.GET_TOPIC_CONFIG, "broker", TOPIC_FIELD | {"lo": maybe("true")}, answer_body=("topicName", "perm")),
    Example(Code.DELETE_TOPIC_IN_BROKER, "broker", {"topic": text("CodesGone")}),
    Example(Code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, "broker", answer_body=("topicList",)),
    Example(Code.GET_TOPIC_STATS_INFO, "broker", TOPIC_FIELD, answer_body=("offsetTable",)),
    Example(Code.QUERY_TOPIC_CONSUME_BY_WHO, "broker", TOPIC_FIELD, answer_body=("groupList",)),
    Example(
        Code.SEARCH_OFFSET_BY_TIMESTAMP, "broker", QUEUE | {"timestamp": number(0)}, answer_fields=("offset",),
    ),
    Example(Code.GET_MAX_OFFSET, "broker", QUEUE | {"committed": maybe("true")}, answer_fields=("offset",)),
    Example(Code.GET_MIN_OFFSET, "broker", QUEUE, answer_fields=("offset",)),
    Example(Code.GET_EARLIEST_MSG_STORETIME, "broker", QUEUE, answer_fields=("timestamp",)),
    Example(
        Code.QUERY_CONSUME_QUEUE, "broker",
        QUEUE | {"index": number(0), "count": number(10), "consumerGroup": maybe(GROUP)},
        answer_body=("maxQueueIndex", "minQueueIndex", "queueData", "filterData", "subscriptionData"),
        wording=("0@", "-1@", "2147483647@"),
    ),
    Example(
        Code.UPDATE_BROKER_CONFIG, "broker", body=b"longPollingEnable=true\n", body_reader="text",
    ),
    Example(Code.GET_BROKER_CONFIG, "broker", answer_fields=("version", "keysInFile", "keysChanged")),
    Example(Code.GET_BROKER_RUNTIME_INFO, "broker", answer_body=("table",)),
    Example(Code.GET_ALL_CONSUMER_OFFSET, "broker", answer_body=("offsetTable",)),
    Example(
        Code.GET_ALL_DELAY_OFFSET, "broker", answers=(0, 1), answer_body=("offsetTable",),
        wording=("No delay offset",),
    ),
    Example(
        Code.UPDATE_AND_CREATE_ACL_CONFIG, "broker",
        {"accessKey": text("someone1"), "secretKey": maybe("12345678"), "admin": maybe("false")}, answers=(ACL_OFF_50,),
    ),
    Example(Code.DELETE_ACL_CONFIG, "broker", {"accessKey": text("someone1")}, answers=(ACL_OFF_51,)),
    Example(Code.GET_BROKER_CLUSTER_ACL_INFO, "broker", answers=(Answer.SYSTEM_ERROR,), wording=ACL_OFF),
    Example(
        Code.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, "broker",
        {"globalWhiteAddrs": text("10.0.0.1"), "aclFileFullPath": maybe("")}, answers=(ACL_OFF_53,),
    ),
    Example(Code.GET_BROKER_CLUSTER_ACL_CONFIG, "broker", answers=(Answer.SYSTEM_ERROR,), wording=ACL_OFF),
    Example(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, "broker", body=SubscriptionGroupConfig("CG_new").to_json(),
        body_reader="json", needs_body=True,
    ),
    Example(
        Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, "broker",
        body=fastjson.dumps({"groupConfigList": [SubscriptionGroupConfig("CG_new").to_dict()]}),
        body_reader="json", needs_body=True,
    ),
    Example(
        Code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, "broker", answer_body=("subscriptionGroupTable", "dataVersion")
    ),
    Example(Code.GET_SUBSCRIPTIONGROUP_CONFIG, "broker", {"group": text(GROUP)}, answer_body=("groupName",)),
    Example(
        Code.DELETE_SUBSCRIPTIONGROUP, "broker",
        {"groupName": text("CG_gone"), "removeOffset": maybe("true"), "cleanOffset": maybe("true")},
    ),
    Example(
        Code.GET_CONSUMER_CONNECTION_LIST, "broker", GROUP_FIELD,
        answer_body=("connectionSet", "subscriptionTable", "consumeType", "messageModel", "consumeFromWhere"),
    ),
    Example(
        Code.GET_PRODUCER_CONNECTION_LIST, "broker", {"producerGroup": text(PRODUCERS)}, answer_body=("connectionSet",),
        wording=("the producer group[",),
    ),
    Example(Code.GET_ALL_PRODUCER_INFO, "broker", answer_body=("data",)),
    Example(Code.QUERY_TOPICS_BY_CONSUMER, "broker", {"group": text(GROUP)}, answer_body=("topicList",)),
    Example(
        Code.QUERY_SUBSCRIPTION_BY_CONSUMER, "broker", TOPIC_FIELD | {"group": text(GROUP)},
        answer_body=("group", "topic", "subscriptionData"),
    ),
    Example(
        Code.GET_CONSUME_STATS, "broker",
        GROUP_FIELD | {"topic": maybe(TOPIC), "topicList": maybe(TOPIC)}, answer_body=("offsetTable", "consumeTps"),
    ),
    Example(
        Code.GET_BROKER_CONSUME_STATS, "broker", {"isOrder": Field("false", is_lenient=True)},
        answer_body=("consumeStatsList", "totalDiff", "brokerAddr"),
    ),
    Example(
        Code.QUERY_CONSUME_TIME_SPAN, "broker", TOPIC_FIELD | {"group": text(GROUP)},
        answer_body=("consumeTimeSpanSet",),
    ),
    Example(
        Code.INVOKE_BROKER_TO_RESET_OFFSET, "broker",
        TOPIC_FIELD | {"group": text(GROUP), "timestamp": number(-1), "isForce": maybe("true"),
                       "queueId": maybe_number(-1), "offset": maybe_number(-1)},
        answer_body=("offsetTable",), wording=("THe consumer group <", "[reset-offset]"),
    ),
    Example(
        Code.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, "broker",
        TOPIC_FIELD | {"group": text(GROUP), "clientAddr": maybe(CLIENT)}, answer_body=("consumerTable",),
        wording=("No Any Consumer online",),
    ),
    Example(
        Code.GET_CONSUMER_RUNNING_INFO, "broker",
        GROUP_FIELD | {"clientId": text(CLIENT), "jstackEnable": maybe("false")}, answer_body=("properties",),
        wording=NOT_ONLINE,
    ),
    Example(
        Code.QUERY_CORRECTION_OFFSET, "broker",
        TOPIC_FIELD | {"compareGroup": text(GROUP), "filterGroups": maybe("CG_other")},
        answer_body=("correctionOffsets",),
    ),
    Example(
        Code.CONSUME_MESSAGE_DIRECTLY, "broker",
        GROUP_FIELD | {"clientId": maybe(CLIENT), "msgId": maybe("{message_id}"), "brokerName": maybe("broker-a")},
        wording=NOT_ONLINE,
    ),
    Example(
        Code.CLONE_GROUP_OFFSET, "broker",
        {"srcGroup": text(GROUP), "destGroup": text("CG_clone"), "topic": maybe(TOPIC), "offline": maybe("true")},
    ),
    Example(
        Code.VIEW_BROKER_STATS_DATA, "broker", {"statsName": text("TOPIC_PUT_NUMS"), "statsKey": text(TOPIC)},
        answer_body=("statsMinute", "statsHour", "statsDay"), wording=("The stats <",),
    ),
    Example(Code.CLEAN_EXPIRED_CONSUMEQUEUE, "broker"),
    Example(Code.CLEAN_UNUSED_TOPIC, "broker"),
    Example(Code.DELETE_EXPIRED_COMMITLOG, "broker"),
    Example(
        Code.RESUME_CHECK_HALF_MESSAGE, "broker", {"msgId": text("{half_message_id}")},
        wording=("Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed",),
    ),
    Example(
        Code.REGISTER_FILTER_SERVER, "broker", {"filterServerAddr": text("10.0.0.1:5000")},
        answer_fields=("brokerName", "brokerId"),
    ),
    Example(
        Code.PROMOTE_SLAVE, "broker",
        {"epoch": text("1"), "end": text("0"), "planned": maybe("false"), "force": maybe("false")}, answers=(1,),
        wording=("this broker is a master already",),
    ),
    Example(
        Code.HOLD_MESSAGES, "broker",
        {"seconds": number(0), "catchUpSeconds": maybe_number(0), "slave": maybe("10.0.0.1:10911")},
    ),
    Example(Code.GET_CONNECTIONS, "broker", {"after": maybe_number(0)}, answer_body=("connections", "next")),
    Example(
        Code.CLOSE_CONNECTIONS, "broker", {"clientId": text("10.0.0.1@away")},
        answer_fields=("count",),
    ),
    Example(
        Code.TELL_EPOCH, "broker", {
            "brokerName": text("another-one"), "epoch": number(1), "epochId": text("0123456789abcdef"),
            "master": text("10.0.0.1:10911"), "yield": maybe("false"),
        },
        answers=(1,), wording=("this is",),  # of its own name it would end as a master
    ),
    Example(
        Code.JOIN_GROUP, "broker", {"brokerName": text("another-one")},
        answers=(1,), wording=("this is",),  # etcd gives each store its number
    ),
    Example(
        Code.PAUSE_FAILOVER, "broker", {
            "brokerName": text("another-one"), "who": text("me"), "why": text("disks"), "until": maybe("0"),
            "ends": maybe("false"), "force": maybe("false"),
        },
        answers=(1,), wording=("this is",),  # it would need etcd
    ),
    Example(Code.GET_FAILOVER, "broker", {}, answer_body=("broker_name", "unknown", "members", "changes")),
    Example(
        Code.GET_LEASES, "broker", {"consumerGroup": text(GROUP), "count": maybe("10")},
        answer_body=("modes", "total", "leases"),
    ),
    Example(
        Code.GET_TOPIC_FIGURES, "broker", {"after": maybe(""), "topic": maybe(TOPIC)}, answer_body=("topics", "next")
    ),
]  # fmt: skip

_REGISTER_FIELDS, _REGISTER_BODY = registration("127.0.0.1:1", name="broker-z", topics=("CodesZ",))
IDENTITY = {
    "brokerName": text("broker-z"),
    "brokerAddr": text("127.0.0.1:1"),
    "clusterName": text("DefaultCluster"),
    "brokerId": number(0),
}
KEY = {"namespace": text("NS"), "key": text("K")}
TOPICS = ("topicList",)
NAMESRV = [
    Example(Code.PUT_KV_CONFIG, "namesrv", KEY | {"value": text("V")}),
    Example(Code.GET_KV_CONFIG, "namesrv", KEY, answer_fields=("value",)),
    Example(Code.GET_KVLIST_BY_NAMESPACE, "namesrv", {"namespace": text("NS")}, answer_body=("table",)),
    Example(Code.DELETE_KV_CONFIG, "namesrv", {"namespace": text("NS"), "key": text("other")}),
    Example(
        Code.REGISTER_BROKER, "namesrv",
        IDENTITY | {"haServerAddr": maybe("127.0.0.1:2"), "compressed": maybe("false"), "bodyCrc32": maybe_number(0)},
        _REGISTER_BODY, wording=("crc32 not match",), body_reader="json",
    ),
    Example(
        Code.QUERY_DATA_VERSION, "namesrv", IDENTITY, DataVersion(1, 1).to_json(), answer_fields=("changed",),
        body_reader="json", needs_body=True,
    ),
    Example(Code.GET_ROUTEINFO_BY_TOPIC, "namesrv", TOPIC_FIELD, answer_body=("brokerDatas", "queueDatas")),
    Example(Code.GET_BROKER_CLUSTER_INFO, "namesrv", answer_body=("brokerAddrTable", "clusterAddrTable")),
    Example(
        Code.WIPE_WRITE_PERM_OF_BROKER, "namesrv", {"brokerName": text("broker-z")}, answer_fields=("wipeTopicCount",)
    ),
    Example(
        Code.ADD_WRITE_PERM_OF_BROKER, "namesrv", {"brokerName": text("broker-z")}, answer_fields=("addTopicCount",)
    ),
    Example(Code.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "namesrv", answer_body=TOPICS),
    Example(
        Code.DELETE_TOPIC_IN_NAMESRV, "namesrv",
        {"topic": text("CodesZ"), "clusterName": maybe("DefaultCluster")},
    ),
    Example(Code.GET_TOPICS_BY_CLUSTER, "namesrv", {"cluster": text("DefaultCluster")}, answer_body=TOPICS),
    Example(Code.GET_SYSTEM_TOPIC_LIST_FROM_NS, "namesrv", answer_body=("topicList", "brokerAddr")),
    Example(Code.GET_UNIT_TOPIC_LIST, "namesrv", answer_body=TOPICS),
    Example(Code.GET_HAS_UNIT_SUB_TOPIC_LIST, "namesrv", answer_body=TOPICS),
    Example(Code.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, "namesrv", answer_body=TOPICS),
    Example(Code.UPDATE_NAMESRV_CONFIG, "namesrv", body=b"orderMessageEnable=false\n", body_reader="text"),
    Example(Code.GET_NAMESRV_CONFIG, "namesrv"),
    Example(Code.UNREGISTER_BROKER, "namesrv", IDENTITY),
]  # fmt: skip

# Codes that RocketMQ 4.9 names without serving them, that are meant for clients, or that only 5.x knows: code 3.
UNSUPPORTED = (
    13, 22, 23, 27, 39, 40, 209, 210, 211, 212, 213, 214, 220, 221, 302, 326, 901, 907, 3001,
    0, 1, 9999, -1, 2147483647,
)  # fmt: skip
