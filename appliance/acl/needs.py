"""The permissions that a request needs, read from its header, its body, and the stored message that it refers to.

A rule consists of readers; each yields the topics or groups that the request uses, with the permission. A reader looks
at every name under which a handler may find a field: a request that sets two of them needs the permissions of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from appliance.acl.account import ANY, PUB, SUB
from appliance.errors import BrokerError
from appliance.remoting.header_fields import long_field
from appliance.remoting.request_body import read_body
from gantrymq.message.properties import INNER_MULTI_DISPATCH
from gantrymq.message.topics import pop_retry_topic
from gantrymq.remoting.bodies import CheckClientRequestBody, HeartbeatData, LockBatchRequest
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.pop_bodies import BatchAckRequest, QueryAssignmentRequest

Fields = Mapping[str, str]


class Need(NamedTuple):
    """A permission on a topic; on a group when `permission` is 0."""

    name: str
    permission: int


class Lookup(Protocol):
    """Access to the store."""

    def topic_at(self, physical_offset: int) -> str | None:
        """The topic of the message at this offset, the real one for delayed and half messages; None: no message."""


Reader = Callable[[Fields, bytes, Lookup], Iterator[Need]]


def _topic(permission: int, names: tuple[str, ...], *, optional: bool) -> Reader:
    def read(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
        found = [fields[name] for name in names if name in fields]
        if not found and not optional:
            found = ["null"]  # the handler refuses it later; until then it counts as an unknown topic
        for topic in found:
            yield Need(topic, permission)

    return read


def publish(*names: str) -> Reader:
    """PUB on the topic in a field of one of these names."""
    return _topic(PUB, names, optional=False)


def subscribe(*names: str) -> Reader:
    """SUB on the topic."""
    return _topic(SUB, names, optional=False)


def subscribe_if_given(*names: str) -> Reader:
    """SUB on the topic, if the request names one."""
    return _topic(SUB, names, optional=True)


def touch(*names: str) -> Reader:
    """PUB or SUB on the topic."""
    return _topic(ANY, names, optional=False)


def group(*names: str) -> Reader:
    """Membership of the consumer group in the field."""

    def read(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
        found = [fields[name] for name in names if name in fields]
        for name in found or ["null"]:
            yield Need(name, 0)

    return read


def group_if_given(*names: str) -> Reader:
    """The same, if the request names one."""

    def read(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
        for name in names:
            if fields.get(name):
                yield Need(fields[name], 0)

    return read


def further_queues(*names: str) -> Reader:
    """PUB on every further queue to which a message's properties dispatch it."""

    def read(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
        for name in names:
            text = fields.get(name, "")
            if INNER_MULTI_DISPATCH in text:
                for pair in text.split("\x02"):
                    key, _, value = pair.partition("\x01")
                    if key == INNER_MULTI_DISPATCH:
                        yield from (Need(topic, PUB) for topic in value.split(",") if topic)

    return read


def stored(permission: int, *names: str, remark: str) -> Reader:
    """The permission on the topic of the message at the physical offset in the field.

    If no message starts there, the request is refused here, with the handler's own text. It must not reach the handler:
    by then another client's message may have been stored at that offset.
    """

    def read(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
        for name in names:
            offset = long_field(fields, name)
            topic = lookup.topic_at(offset) if offset >= 0 else None
            if topic is None:
                raise BrokerError(ResponseCode.SYSTEM_ERROR, remark.format(offset))
            yield Need(topic, permission)

    return read


def heartbeat(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Membership of every consumer group of a heartbeat, SUB on every topic it subscribes to."""
    beat = read_body(HeartbeatData, body)
    for group_name in {client.group for client in beat.proxy.clients} if beat.proxy is not None else ():
        if group_name:
            yield Need(group_name, 0)
    for consumer in beat.consumer_data_set:
        yield Need(str(consumer.group_name), 0)
        for subscription in consumer.subscription_data_set:
            yield Need(str(subscription.topic), SUB)


def checked_subscription(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Group and topic of a subscription that the client asks to be checked (46)."""
    wanted = read_body(CheckClientRequestBody, body)
    yield Need(str(wanted.group), 0)
    yield Need(str(wanted.subscription_data.topic), SUB)


def locked_queues(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Group and topics of the queues to lock or unlock (41, 42)."""
    wanted = read_body(LockBatchRequest, body)
    yield Need(str(wanted.consumer_group), 0)
    for topic in {str(queue.topic) for queue in wanted.mq_set}:
        yield Need(topic, SUB)


def delivered(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Group and topic of a delivery (200051, 200053): the group's own retry topic stands for the topic it is of."""
    group_name = fields.get("consumerGroup", "null")
    yield Need(group_name, 0)
    yield Need(fields.get("topic", "null").removeprefix(pop_retry_topic(group_name, "")), SUB)


def acknowledged(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Groups and topics of all deliveries that 200151 acknowledges."""
    acks = read_body(BatchAckRequest, body).acks
    for group_name, topic in {(ack.consumer_group, ack.topic) for ack in acks} or {("null", "null")}:
        yield Need(group_name, 0)
        yield Need(topic, SUB)


def assignment(fields: Fields, body: bytes, lookup: Lookup) -> Iterator[Need]:
    """Group and topic of a member that asks for its queues (400); retry topics of the group are its own."""
    asked = read_body(QueryAssignmentRequest, body)
    yield Need(asked.consumer_group, 0)
    yield Need(asked.topic.removeprefix(pop_retry_topic(asked.consumer_group, "")), SUB)
