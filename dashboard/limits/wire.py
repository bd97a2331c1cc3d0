"""The check of every request that leaves for the cluster on behalf of an account with a limit.

It stands where all requests pass, so no page, operation or stream can go around it. A request code that is not in the
table is refused to such an account: what is new has to be thought about first.
"""

from __future__ import annotations

import json

from dashboard.limits.names import NameLimit, current
from gantrymq.message.properties import INNER_MULTI_DISPATCH, decode_properties
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand

# Of each code the header fields that hold a topic or a group; () is a list that is filtered when it has come, or no
# name at all. Where a group's own place is meant, the topics that it reads are its own matter.
FIELDS: dict[int, tuple[str, ...]] = {
    RequestCode.GET_BROKER_CLUSTER_INFO: (),
    RequestCode.GET_ALL_TOPIC_CONFIG: (),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: (),
    RequestCode.VIEW_MESSAGE_BY_ID: (),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: ("topic",),
    RequestCode.GET_TOPIC_STATS_INFO: ("topic",),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: ("topic",),
    RequestCode.UPDATE_AND_CREATE_TOPIC: ("topic",),
    RequestCode.DELETE_TOPIC_IN_BROKER: ("topic",),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: ("topic",),
    RequestCode.GET_MAX_OFFSET: ("topic",),
    RequestCode.GET_MIN_OFFSET: ("topic",),
    RequestCode.GET_EARLIEST_MSG_STORETIME: ("topic",),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: ("topic",),
    RequestCode.PULL_MESSAGE: ("topic",),
    RequestCode.QUERY_MESSAGE: ("topic",),
    RequestCode.SEND_MESSAGE: ("topic",),
    RequestCode.SEND_MESSAGE_V2: ("b",),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: ("consumerGroup",),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: ("consumerGroup",),
    RequestCode.GET_CONSUMER_RUNNING_INFO: ("consumerGroup",),
    RequestCode.GET_CONSUME_STATS: ("consumerGroup",),
    RequestCode.GET_LEASES: ("consumerGroup",),
    RequestCode.QUERY_CONSUMER_OFFSET: ("consumerGroup", "topic"),
    RequestCode.UPDATE_CONSUMER_OFFSET: ("consumerGroup", "topic"),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: ("consumerGroup",),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: ("group", "topic"),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: ("groupName",),
}
# The same of codes whose body holds them.
IN_BODY: dict[int, tuple[str, ...]] = {
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: ("groupName",),
    RequestCode.SET_MESSAGE_REQUEST_MODE: ("consumerGroup", "topic"),
}
# What clients told of messages lies in one topic for all; it is asked with the id of a message that was found before.
# Where a send has its message's properties; they may name further queues to which a broker dispatches it.
PROPERTIES: dict[int, str] = {RequestCode.SEND_MESSAGE: "properties", RequestCode.SEND_MESSAGE_V2: "i"}
_TRACED = frozenset({RequestCode.QUERY_MESSAGE, RequestCode.GET_ROUTEINFO_BY_TOPIC})


def check(request: RemotingCommand) -> None:
    """Raises NameRefused."""
    limit = current()
    if limit.is_limited and not _may(limit, request):
        raise limit.refusal()


def _may(limit: NameLimit, request: RemotingCommand) -> bool:
    if in_body := IN_BODY.get(request.code):
        body = json.loads(request.body)
        return all(limit.allows(str(body.get(field) or "")) for field in in_body)
    fields = FIELDS.get(request.code)
    if fields is None:
        return False
    names = [request.ext_fields.get(field, "") for field in fields]
    if request.code in _TRACED and names == [TRACE_TOPIC]:
        return True
    return all(map(limit.allows, [*names, *_further_queues(request)]))


def _further_queues(request: RemotingCommand) -> list[str]:
    text = request.ext_fields.get(PROPERTIES.get(request.code, ""), "")
    return decode_properties(text).get(INNER_MULTI_DISPATCH, "").split(",") if INNER_MULTI_DISPATCH in text else []
