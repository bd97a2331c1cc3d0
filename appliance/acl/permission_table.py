"""The permissions for every request code that a broker answers.

    ADMIN          an account with admin: true; an address on the global white list is not enough
    ACCOUNT        any account
    Needs(...)     permissions on the topics and groups that the readers find; see needs.py

A code without an entry is always refused. Topics named %RETRY%g and %DLQ%g mean group g. The table is stricter than
RocketMQ 4.9, which only checks 10, 310, 36, 11, 12, 34, 35, 38 and 15, and treats 17, 25, 200, 207 and 215 as
administration; the other codes are security holes there.
"""

from __future__ import annotations

from appliance.acl.account import PUB, SUB
from appliance.acl.needs import (
    Reader,
    acknowledged,
    assignment,
    checked_subscription,
    delivered,
    further_queues,
    group,
    group_if_given,
    heartbeat,
    locked_queues,
    publish,
    stored,
    subscribe,
    subscribe_if_given,
    touch,
)
from gantrymq.remoting.codes import RequestCode


class Rule:
    """The permissions for a request code: ADMIN, ACCOUNT, or those that its readers find."""

    __slots__ = ("is_admin", "readers")

    def __init__(self, *readers: Reader, is_admin: bool = False) -> None:
        self.readers = readers
        self.is_admin = is_admin


def Needs(*readers: Reader) -> Rule:  # capitalised as ADMIN and ACCOUNT, its alternatives in the table
    return Rule(*readers)


ADMIN = Rule(is_admin=True)
ACCOUNT = Rule()

_NO_MESSAGE = "can not find message by the offset, {}"
_NOT_SENT_BACK = "look message by offset failed, {}"
_NO_HALF_MESSAGE = "Find prepared transaction message failed"

# Access.may_use says the same for sends that name one topic once, and for pulls.
_SEND = Needs(publish("topic", "b"), further_queues("properties", "i"))
_PULL = Needs(subscribe("topic"), group("consumerGroup"))
_QUEUE = Needs(subscribe("topic"))

PERMISSIONS: dict[int, Rule] = {
    # messages in
    RequestCode.SEND_MESSAGE: _SEND,
    RequestCode.SEND_MESSAGE_V2: _SEND,
    RequestCode.SEND_BATCH_MESSAGE: _SEND,
    RequestCode.SEND_REPLY_MESSAGE: _SEND,
    RequestCode.SEND_REPLY_MESSAGE_V2: _SEND,
    RequestCode.CONSUMER_SEND_MSG_BACK: Needs(group("group"), stored(SUB, "offset", remark=_NOT_SENT_BACK)),
    RequestCode.END_TRANSACTION: Needs(stored(PUB, "commitLogOffset", remark=_NO_HALF_MESSAGE)),
    RequestCode.RECALL_MESSAGE: Needs(publish("topic")),
    # messages out
    RequestCode.PULL_MESSAGE: _PULL,
    RequestCode.LITE_PULL_MESSAGE: _PULL,
    RequestCode.POP_MESSAGE: _PULL,
    RequestCode.NOTIFICATION: _PULL,
    RequestCode.ACK_MESSAGE: Needs(delivered),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: Needs(delivered),
    RequestCode.BATCH_ACK_MESSAGE: Needs(acknowledged),
    RequestCode.QUERY_ASSIGNMENT: Needs(assignment),
    RequestCode.QUERY_MESSAGE: _QUEUE,
    RequestCode.VIEW_MESSAGE_BY_ID: Needs(stored(SUB, "offset", remark=_NO_MESSAGE)),
    RequestCode.QUERY_CONSUME_QUEUE: Needs(subscribe("topic"), group_if_given("consumerGroup")),
    # clients and their groups
    RequestCode.HEART_BEAT: Needs(heartbeat),
    RequestCode.UNREGISTER_CLIENT: Needs(group_if_given("consumerGroup")),
    RequestCode.CHECK_CLIENT_CONFIG: Needs(checked_subscription),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: Needs(group("consumerGroup")),
    RequestCode.LOCK_BATCH_MQ: Needs(locked_queues),
    RequestCode.UNLOCK_BATCH_MQ: Needs(locked_queues),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: Needs(group("consumerGroup")),
    RequestCode.GET_CONSUMER_RUNNING_INFO: Needs(group("consumerGroup")),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: Needs(group("group")),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: Needs(group("group"), subscribe("topic")),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: Needs(group("group")),
    # offsets
    RequestCode.QUERY_CONSUMER_OFFSET: _PULL,
    RequestCode.UPDATE_CONSUMER_OFFSET: _PULL,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _QUEUE,
    RequestCode.GET_MAX_OFFSET: _QUEUE,
    RequestCode.GET_MIN_OFFSET: _QUEUE,
    RequestCode.GET_EARLIEST_MSG_STORETIME: _QUEUE,
    RequestCode.GET_CONSUME_STATS: Needs(group("consumerGroup"), subscribe_if_given("topic")),
    RequestCode.GET_LEASES: Needs(group("consumerGroup")),
    RequestCode.QUERY_CONSUME_TIME_SPAN: Needs(group("group"), subscribe("topic")),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: Needs(group("group"), subscribe("topic")),
    # topics
    RequestCode.GET_TOPIC_STATS_INFO: Needs(touch("topic")),
    RequestCode.GET_TOPIC_CONFIG: Needs(touch("topic")),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: Needs(touch("topic")),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: ACCOUNT,
    # administration
    RequestCode.PROMOTE_SLAVE: ADMIN,
    RequestCode.HOLD_MESSAGES: ADMIN,
    RequestCode.GET_CONNECTIONS: ADMIN,
    RequestCode.CLOSE_CONNECTIONS: ADMIN,
    RequestCode.GET_TOPIC_FIGURES: ADMIN,
    RequestCode.TELL_EPOCH: ADMIN,
    RequestCode.JOIN_GROUP: ADMIN,
    RequestCode.GET_FAILOVER: ADMIN,
    RequestCode.PAUSE_FAILOVER: ADMIN,
    RequestCode.UPDATE_AND_CREATE_TOPIC: ADMIN,
    RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: ADMIN,
    RequestCode.DELETE_TOPIC_IN_BROKER: ADMIN,
    RequestCode.GET_ALL_TOPIC_CONFIG: ADMIN,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: ADMIN,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: ADMIN,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: ADMIN,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: ADMIN,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: ADMIN,
    RequestCode.GET_ALL_PRODUCER_INFO: ADMIN,
    RequestCode.GET_ALL_CONSUMER_OFFSET: ADMIN,
    RequestCode.GET_ALL_DELAY_OFFSET: ADMIN,
    RequestCode.GET_BROKER_CONSUME_STATS: ADMIN,
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: ADMIN,
    RequestCode.QUERY_CORRECTION_OFFSET: ADMIN,
    RequestCode.CLONE_GROUP_OFFSET: ADMIN,
    RequestCode.CONSUME_MESSAGE_DIRECTLY: ADMIN,
    RequestCode.RESUME_CHECK_HALF_MESSAGE: ADMIN,
    RequestCode.SET_MESSAGE_REQUEST_MODE: ADMIN,
    RequestCode.REGISTER_FILTER_SERVER: ADMIN,
    RequestCode.UPDATE_BROKER_CONFIG: ADMIN,
    RequestCode.GET_BROKER_CONFIG: ADMIN,
    RequestCode.GET_BROKER_RUNTIME_INFO: ADMIN,
    RequestCode.GET_BROKER_HA_STATUS: ADMIN,
    RequestCode.VIEW_BROKER_STATS_DATA: ADMIN,
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: ADMIN,
    RequestCode.CLEAN_UNUSED_TOPIC: ADMIN,
    RequestCode.DELETE_EXPIRED_COMMITLOG: ADMIN,
    # accounts
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: ADMIN,
    RequestCode.DELETE_ACL_CONFIG: ADMIN,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: ADMIN,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ADMIN,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: ADMIN,
}
