"""Who gets which queues, and how (400), how a group consumes a topic (401), and what it has in flight (29410)."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
from collections.abc import Sequence
from typing import Any

from appliance.broker.pop.handlers import PopParts
from appliance.broker.pop.leases import Key, Lease
from appliance.broker.pop.modes import POP, PULL, Mode
from appliance.broker.pop.service import PopService
from appliance.errors import BrokerError
from appliance.remoting.connection import ServerConnection
from appliance.remoting.header_fields import int_field, text_field
from appliance.remoting.request_body import read_body
from gantrymq.client.consume.rebalance import AllocateStrategy, allocate_averagely, allocate_by_circle
from gantrymq.errors import GantryError, RecordError
from gantrymq.message.model import MessageQueue
from gantrymq.message.properties import UNIQ_KEY, find_property
from gantrymq.message.record import split_record
from gantrymq.message.topics import is_retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.pop_bodies import GroupLeases, LeasedMessage, QueryAssignmentRequest, SetModeRequest
from store.base.errors import NotReadableNow

logger = logging.getLogger(__name__)

BROADCASTING = "BROADCASTING"
ANY_QUEUE = -1
STRATEGIES: dict[str, AllocateStrategy] = {"AVG": allocate_averagely, "AVG_BY_CIRCLE": allocate_by_circle}
SHOWN_MAX = 500


async def query_assignment(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """400: the queues of one member, each with the mode. Without an assignment the client keeps what it has."""
    asked = read_body(QueryAssignmentRequest, request.body)
    mode = parts.pop.modes.get(asked.topic, asked.consumer_group) or Mode(PULL)
    if is_retry_topic(asked.topic):
        mode = Mode(PULL)
    try:
        queues = await parts.pop.routes.queues(asked.topic)
    except GantryError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"the route of topic {asked.topic} is not known: {exc}") from exc
    if not queues:
        return request.reply(body=fastjson.dumps({}))
    if asked.message_model == BROADCASTING:
        return _assigned(request, list(queues), mode)
    strategy = STRATEGIES.get(asked.strategy_name)
    if strategy is None:
        raise BrokerError(
            ResponseCode.INVALID_PARAMETER,
            f"strategy {asked.strategy_name!r:.80} is not one that a broker knows: {', '.join(STRATEGIES)}",
        )
    info = parts.consumers.get(asked.consumer_group)
    if info is None:
        return request.reply(body=fastjson.dumps({}))
    return _assigned(request, assigned(strategy, asked.client_id, queues, sorted(info.client_ids()), mode), mode)


def _assigned(request: RemotingCommand, queues: list[MessageQueue], mode: Mode) -> RemotingCommand:
    def entry(queue: MessageQueue) -> dict[str, Any]:
        members = {"brokerName": queue.broker_name, "queueId": queue.queue_id, "topic": queue.topic}
        return {"messageQueue": members, "mode": mode.name}

    return request.reply(body=fastjson.dumps({"messageQueueAssignments": [entry(queue) for queue in queues]}))


async def set_mode(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """401: have a group pull or pop a topic from now on. To PULL: when what it has out can be pulled."""
    wanted = read_body(SetModeRequest, request.body)
    topic, group = wanted.topic, wanted.consumer_group
    if is_retry_topic(topic):
        raise BrokerError(ResponseCode.NO_PERMISSION, "retry topic is not allowed to set mode")
    if topic not in parts.topics.configs:
        raise BrokerError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist")
    if group not in parts.groups.configs:
        raise BrokerError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "subscription group does not exist")
    if wanted.mode not in (PULL, POP):
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"mode {wanted.mode!r:.80} is neither {PULL} nor {POP}")
    if wanted.mode == PULL:
        await parts.pop.moving.leave(topic, group)
    parts.pop.set_mode(topic, group, Mode(wanted.mode, wanted.pop_share_queue_num))
    parts.pop.hold.wake(topic, group)  # pops that wait are refused by now
    logger.info(
        "mode of a group set by a request",
        extra={"event": "pop_mode_set", "peer": connection.remote_text, "topic": topic, "group": group}
        | {"mode": wanted.mode, "share": wanted.pop_share_queue_num},
    )
    return request.reply()


def get_leases(parts: PopParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29410: what a group has in flight, the oldest first; a group that pops nothing has nothing."""
    group = text_field(request.ext_fields, "consumerGroup")
    count = int_field(request.ext_fields, "count", SHOWN_MAX, low=0, high=SHOWN_MAX)
    return request.reply(body=in_flight(parts.pop, group, count).to_json())


def assigned(
    strategy: AllocateStrategy, client_id: str, queues: Sequence[MessageQueue], members: Sequence[str], mode: Mode
) -> list[MessageQueue]:
    """The queues of one member: a pure function of the same input on all brokers. queues, members: sorted.

    A group that pulls: as its clients would share the queues themselves. A group that pops: every member all queues of
    each broker, as one queue with the id -1; or, when only so many members are to share, its own share and those of the
    members behind it (RocketMQ: popShareQueueNum).
    """
    if mode.name != POP:
        return strategy(client_id, queues, members)
    if mode.share <= 0 or mode.share >= len(members) - 1:
        return list(dict.fromkeys(queue._replace(queue_id=ANY_QUEUE) for queue in queues))
    if client_id not in members or not queues:
        return []
    at = members.index(client_id)
    if len(members) > len(queues):  # each gets one
        return [queues[at % len(queues)]]
    sharing = [members[(at + step) % len(members)] for step in range(mode.share + 1)]
    return list(dict.fromkeys(queue for member in sharing for queue in strategy(member, queues, members)))


def in_flight(pop: PopService, group: str, count_max: int) -> GroupLeases:
    """The group's modes, how much it has in flight, and the oldest of that."""
    modes = {topic: mode.name for (topic, name), mode in pop.modes.table.items() if name == group}
    popping = [topic for topic, name in list(pop.modes.popping) if name == group and pop.modes.pops(topic, name)]
    leases = (
        (lease.pop_ms, key, offset, lease)
        for key, queue in pop.book.queues.items()
        if key.group == group
        for offset, lease in itertools.islice(queue.leases.items(), count_max)
    )
    oldest = heapq.nsmallest(count_max, leases, key=lambda each: each[:3])
    shown = [_described(pop, key, offset, lease) for _, key, offset, lease in oldest]
    return GroupLeases(dict.fromkeys(popping, POP) | modes, pop.book.by_group[group], shown)


def _described(pop: PopService, key: Key, offset: int, lease: Lease) -> LeasedMessage:
    """One message; what the log no longer has, has no id."""
    message_id, before, record = "", 0, None
    with contextlib.suppress(NotReadableNow):
        record = pop.taking.record_at(key, offset)
    if record is not None:
        try:
            fields = split_record(record)
            before = fields.reconsume_times
            message_id = (find_property(fields.properties, UNIQ_KEY.encode()) or b"").decode(errors="replace")
        except RecordError:  # damaged: reading it says so, elsewhere
            message_id = ""
    queue = pop.book.queues[key]
    return LeasedMessage(
        key.topic, key.queue_id, offset, message_id, lease.client, lease.pop_ms, lease.due_ms,
        before + lease.times + 1, queue.is_ordered,
    )  # fmt: skip
