"""SendMessage: normal, ordered by message group, for a time, half messages of transactions. And RecallMessage."""

from __future__ import annotations

from appliance.acl.account import PUB
from appliance.proxy.brokers import Brokers, BrokerSession
from appliance.proxy.callers import Caller
from appliance.proxy.messages.message_ids import TransactionId
from appliance.proxy.messages.send_checks import check_type, outgoing_of
from appliance.proxy.messages.statuses import Refused, ok, status, status_of
from appliance.proxy.protocol.definition_pb2 import Code, Message
from appliance.proxy.protocol.service_pb2 import (
    RecallMessageRequest,
    RecallMessageResponse,
    SendMessageRequest,
    SendMessageResponse,
    SendResultEntry,
)
from gantrymq.client.connection.send_codec import Outgoing
from gantrymq.client.produce.recall import parsed, recall_at
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import MessageQueue
from gantrymq.message.properties import string_hash_code
from gantrymq.message.sysflag import TRANSACTION_PREPARED
from gantrymq.message.topic_attributes import MESSAGE_TYPE

SEND_S = 3.0  # clients without a deadline; others have their own
ANSWER_S = 0.1  # of the deadline, for the answer's way
MESSAGES_MAX = 32  # of one request

STATUS_CODES = {
    SendStatus.SEND_OK: Code.OK,
    SendStatus.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    SendStatus.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    SendStatus.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}


class Sending:
    """The RPC. Its invariant: an entry is OK only when a broker has said that it stored that message."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    async def send_message(self, caller: Caller, request: SendMessageRequest) -> SendMessageResponse:
        messages = request.messages
        if not messages:
            raise Refused(Code.MESSAGE_CORRUPTED, "no message to send")
        if len(messages) > MESSAGES_MAX:
            raise Refused(Code.BAD_REQUEST, f"{len(messages)} messages in one request: {MESSAGES_MAX} at most")
        if any(message.topic != messages[0].topic for message in messages):
            raise Refused(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        topic = caller.topic(messages[0].topic, PUB)
        packed = [outgoing_of(message, topic) for message in messages]
        session = self._brokers.session(caller.account)
        wanted = (await session.topic_attributes(topic)).get(MESSAGE_TYPE, "")
        for message in messages:
            check_type(message, wanted)
        left_s = SEND_S if caller.left_s is None else max(caller.left_s - ANSWER_S, ANSWER_S)
        entries = [
            await self._entry(session, message, outgoing, left_s)
            for message, outgoing in zip(messages, packed, strict=True)
        ]
        codes = {entry.status.code for entry in entries}
        if len(codes) > 1:
            return SendMessageResponse(status=status(Code.MULTIPLE_RESULTS), entries=entries)
        return SendMessageResponse(status=entries[0].status, entries=entries)

    async def recall_message(self, caller: Caller, request: RecallMessageRequest) -> RecallMessageResponse:
        """Have the broker that a delayed message waits at not deliver it; its handle says which one."""
        topic = caller.topic(request.topic, PUB)
        session = self._brokers.session(caller.account)
        await session.route(topic)
        address = session.address(parsed(request.recall_handle).broker_name)
        message_id = await recall_at(session.client.calls, address, topic, topic, request.recall_handle)
        return RecallMessageResponse(status=ok(), message_id=message_id)

    async def _entry(
        self, session: BrokerSession, message: Message, outgoing: Outgoing, left_s: float
    ) -> SendResultEntry:
        try:
            queue = await _queue_for(session, message.system_properties.message_group, outgoing.topic)
            result = await session.sender(outgoing.topic).deliver(outgoing, left_s, queue)
        except GantryError as exc:
            return SendResultEntry(status=status_of(exc))
        session.client.meet_brokers()
        return _stored(result, is_half=bool(outgoing.sys_flag & TRANSACTION_PREPARED))


def _stored(result: SendResult, *, is_half: bool) -> SendResultEntry:
    if result.status is not SendStatus.SEND_OK:
        why = f"send message failed, sendStatus={result.status.name}"
        return SendResultEntry(status=status(STATUS_CODES[result.status], why))
    entry = SendResultEntry(
        status=ok(), message_id=result.msg_id, offset=result.queue_offset, recall_handle=result.recall_handle
    )
    if is_half:
        _, _, physical_offset = decode_offset_message_id(result.offset_msg_id)
        place = TransactionId(result.queue.broker_name, result.queue_offset, physical_offset)
        entry.transaction_id = place.to_text()
    return entry


async def _queue_for(session: BrokerSession, message_group: str, topic: str) -> MessageQueue | None:
    """The queue of a message group; None: any.

    A group keeps its queue while a broker has no master: its messages wait there, since in another queue later ones
    could be consumed before them.
    """
    if not message_group:
        return None
    route = await session.route(topic)
    queues = sorted({*route.writable, *route.readable} if route.lacks_master else route.writable)
    if not queues:
        raise Refused(Code.FORBIDDEN, f"no queue of topic {topic} can be written")
    return queues[bucket_of(message_group, len(queues))]


# Which queue a message of a group goes to: RocketMQ's choice, so that other proxies agree (Guava: consistentHash).
_MASK = (1 << 64) - 1


def bucket_of(message_group: str, buckets: int) -> int:
    """0 to buckets - 1. When buckets are added, as few groups as possible change theirs."""
    return jump_hash(string_hash_code(message_group), buckets)


def jump_hash(key: int, buckets: int) -> int:
    """The bucket of a 64-bit number."""
    state = key & _MASK
    candidate = 0
    while True:
        state = (2862933555777941757 * state + 1) & _MASK
        number = ((state >> 33) + 1) / 2**31
        following = int((candidate + 1) / number)
        if not 0 <= following < buckets:
            return candidate
        candidate = following
