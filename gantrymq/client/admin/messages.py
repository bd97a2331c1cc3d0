"""Admin calls about messages: finding them by id, key and place, their trace, handing and sending them again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from gantrymq.client.admin.calls import AdminCalls, ask_each
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.groups import GroupAdmin
from gantrymq.client.admin.offsets import OffsetAdmin
from gantrymq.client.admin.results import Delivery, DeliveryState, DirectResult, MessageTrace
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.client.connection.answer_fields import int_field
from gantrymq.client.connection.received_messages import read_messages, read_sound_messages
from gantrymq.client.connection.send_codec import pack_aside
from gantrymq.client.produce.trace_records import decode_records, in_order
from gantrymq.client.results import LostMessage, SendResult
from gantrymq.errors import ConfigError, RecordError, ResponseError
from gantrymq.message import properties as names
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import TOOLS_GROUP, TRACE_TOPIC, is_dlq_topic, is_retry_topic, retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode

ADMIN_PRODUCER_GROUP = "TOOLS_PRODUCER"
LONG_MAX = (1 << 63) - 1
# what the broker made of a message, and must not be sent with it again
NOT_RESENT = frozenset(
    {
        names.UNIQ_KEY, names.CLUSTER, names.MIN_OFFSET, names.MAX_OFFSET, names.REAL_TOPIC, names.REAL_QID,
        names.RETRY_TOPIC, names.ORIGIN_MESSAGE_ID, names.RECONSUME_TIME, names.MAX_RECONSUME_TIMES, names.DELAY,
        names.TRAN_MSG, names.PGROUP, names.MSG_REGION, names.TRACE_ON, names.CONSUME_START_TIME,
        names.CONSUME_ERROR, names.CONSUME_ERROR_TEXT,
    }
)  # fmt: skip


class MessageAdmin:
    """`admin.messages`. Calls that end in _at speak to one broker, the others find it."""

    def __init__(
        self, calls: AdminCalls, cluster: ClusterAdmin, topics: TopicAdmin, groups: GroupAdmin, offsets: OffsetAdmin
    ) -> None:
        self._calls = calls
        self._cluster = cluster
        self._topics = topics
        self._groups = groups
        self._offsets = offsets

    async def view_at(self, address: str, offset: int) -> MessageExt:
        """The message at a commit log offset (the second half of an offset message id). RecordError: it is damaged."""
        answer = await self._calls.call(address, RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset)})
        try:
            messages = await read_messages(answer.body)
        except RecordError as exc:
            raise RecordError(f"the message at offset {offset} of the log of {address} is damaged: {exc}") from exc
        if len(messages) != 1:
            raise RecordError(f"{address} answered with {len(messages)} messages for offset {offset}")
        return messages[0]

    async def query_at(
        self,
        address: str,
        topic: str,
        key: str,
        max_messages: int = 32,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        *,
        unique: bool = False,
        on_lost: Callable[[LostMessage], object] | None = None,
    ) -> list[MessageExt]:
        """The messages with this key (`unique`: with this unique id) stored in a span of time, none when none.

        One that is damaged is left out: on_lost is called with it, else it is logged.
        """
        ext_fields = {
            "topic": topic,
            "key": key,
            "maxNum": str(max_messages),
            "beginTimestamp": str(begin_ms),
            "endTimestamp": str(end_ms),
            "_UNIQUE_KEY_QUERY": "true" if unique else "false",
        }
        answer = await self._calls.call(
            address,
            RequestCode.QUERY_MESSAGE,
            ext_fields,
            accept=(ResponseCode.SUCCESS, ResponseCode.QUERY_NOT_FOUND),
        )
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        read = await read_sound_messages(answer.body, address, on_lost)
        found = [message for message in read if message.topic == topic]  # the index knows hashes
        return [message for message in found if (message.msg_id == key if unique else key in message.keys)]

    async def pull_at(
        self,
        address: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_messages: int = 32,
        *,
        on_lost: Callable[[LostMessage], object] | None = None,
    ) -> tuple[list[MessageExt], int, int, int]:
        """Read a queue without being a consumer of it: messages, next offset, the queue's min and max offset.

        An answer ends before a damaged message. The pull from that one on has no messages, goes on behind it, and calls
        on_lost with it.
        """
        result = await self._calls.pull(
            address,
            TOOLS_GROUP,
            topic,
            queue_id,
            offset,
            max_messages=max_messages,
            subscription="*",
            timeout_s=self._calls.timeout_s,
        )
        if result.lost is not None and on_lost is not None:
            on_lost(result.lost)
        return result.messages, result.next_offset, result.min_offset, result.max_offset

    async def send_at(self, address: str, message: Message, queue_id: int = 0, *, broker_name: str = "") -> SendResult:
        """Store one message in a queue of this broker. The result names the queue's broker as `broker_name` says."""
        return await self._calls.send(address, broker_name, await pack_aside(message), ADMIN_PRODUCER_GROUP, queue_id)

    async def earliest_store_time_at(self, address: str, topic: str, queue_id: int) -> int:
        """Store time (ms) of the oldest message of the queue, -1 when it is empty."""
        ext_fields = {"topic": topic, "queueId": str(queue_id)}
        answer = await self._calls.call(address, RequestCode.GET_EARLIEST_MSG_STORETIME, ext_fields)
        return int_field(answer, "timestamp", address)

    # -- finding, wherever it is --------------------------------------------------------------------------------------

    async def find_by_key(
        self, topic: str, key: str, *, max_messages: int = 64, begin_ms: int = 0, end_ms: int = LONG_MAX
    ) -> list[MessageExt]:
        """The messages with this key at any broker of the topic, oldest first. RouteNotFound: no such topic."""
        return await self._find(topic, key, max_messages, begin_ms, end_ms, unique=False)

    async def find_by_id(self, topic: str, message_id: str) -> MessageExt | None:
        """The message with this id, an offset id or a unique one; None when there is none (any more).

        An id is taken for an offset id only when a broker of this cluster has the address in it.
        """
        try:
            ip, port, offset = decode_offset_message_id(message_id)
        except ValueError:
            pass  # another client's unique id
        else:
            address = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
            names_by_address = {there: name for name, there in (await self._cluster.masters()).items()}
            if address in names_by_address:
                try:
                    message = await self.view_at(address, offset)
                except ResponseError:
                    return None
                message.broker_name = names_by_address[address]
                return message
        found = await self._find(topic, message_id, 32, 0, LONG_MAX, unique=True)
        return found[0] if found else None

    async def _find(
        self, topic: str, key: str, max_messages: int, begin_ms: int, end_ms: int, *, unique: bool
    ) -> list[MessageExt]:
        route = await self._topics.route(topic)
        addresses = {
            broker.broker_name: address
            for broker in route.broker_datas
            if (address := broker.any_address()) is not None
        }

        async def ask(name: str) -> list[MessageExt]:
            found = await self.query_at(addresses[name], topic, key, max_messages, begin_ms, end_ms, unique=unique)
            for message in found:
                message.broker_name = name
            return found

        answers, failures = await ask_each(addresses, ask)
        if failures and not any(answers.values()):
            raise next(iter(failures.values()))
        found = [message for messages in answers.values() for message in messages]
        return sorted(found, key=lambda message: message.store_timestamp)[:max_messages]

    async def read_queue_at(
        self,
        address: str,
        topic: str,
        queue_id: int,
        begin: int,
        end: int | None = None,
        *,
        broker_name: str = "",
        on_lost: Callable[[LostMessage], object] | None = None,
    ) -> AsyncGenerator[MessageExt, None]:
        """The messages of a queue from offset `begin` on, up to before `end` (None: to where it ends now).

        on_lost: called with each that is damaged.
        """
        offset = begin
        while end is None or offset < end:
            messages, next_offset, least, most = await self.pull_at(address, topic, queue_id, offset, on_lost=on_lost)
            end = most if end is None else end
            for message in messages:
                if message.queue_offset < end:
                    message.broker_name = broker_name
                    yield message
            if not messages and (offset >= most or next_offset <= offset):
                return
            offset = max(next_offset, least)

    # -- what became of it --------------------------------------------------------------------------------------------

    async def trace(self, message_id: str, *, topic: str = TRACE_TOPIC) -> MessageTrace:
        """What clients with tracing on told about the message (its unique id). RouteNotFound: no trace topic."""
        traces = await self._find(topic, message_id, 64, 0, LONG_MAX, unique=False)
        records = []
        for trace in traces:
            for record in decode_records(trace.body.decode(errors="replace")):
                if record.msg_id == message_id:
                    record.client_host = trace.born_host[0]
                    records.append(record)
        return MessageTrace(message_id, in_order(records))

    async def deliveries(self, message: MessageExt) -> list[Delivery]:
        """For each group of the message's topic whether it has consumed it, as far as offsets tell."""
        masters = await self._topics.masters(message.topic)
        address = masters.get(message.broker_name) or next(iter(masters.values()))
        offsets = await self._offsets.all_at(address)
        found: list[Delivery] = []
        for group in await self._topics.groups_at(address, message.topic):
            written = offsets.get(f"{message.topic}@{group}", {}).get(message.queue_id)
            state: DeliveryState = "unknown"
            if written is not None:
                state = "consumed" if written > message.queue_offset else "not yet"
            found.append(Delivery(group, state, (await self._groups.members(group)).is_online))
        return found

    # -- again --------------------------------------------------------------------------------------------------------

    async def resend(self, message: MessageExt, *, topic: str | None = None) -> SendResult:
        """Send a copy: a new message with the same body, keys, tag and free properties.

        To `topic`, else to where it belonged: a dead letter or a retry goes to its original topic. ConfigError when
        that can't be told.
        """
        if topic is None:
            topic = message.topic
            if is_dlq_topic(topic) or is_retry_topic(topic):
                topic = message.properties.get(names.RETRY_TOPIC, "")
            if not topic:
                raise ConfigError(f"message {message.msg_id} does not say where it came from: give a topic")
        masters = await self._topics.masters(topic)
        received = names.sendable_properties(message.properties)
        properties = {name: value for name, value in received.items() if name not in NOT_RESENT}
        copy = Message(topic, message.body, properties=properties, flag=message.flag)
        name = message.broker_name if message.broker_name in masters else next(iter(masters))
        return await self.send_at(masters[name], copy, broker_name=name)

    async def put_back(self, message: MessageExt, group: str) -> SendResult:
        """Send a dead letter of the group to this group alone, by its retry topic: it has all its tries before it.

        The message keeps its unique id. By the broker that stored the letter, which has the group's retry topic, if
        its name is known. ConfigError when the letter does not say where it came from.
        """
        origin = message.properties.get(names.RETRY_TOPIC)
        if not origin:
            raise ConfigError(f"message {message.msg_id} does not say where it came from")
        topic = retry_topic(group)
        masters = await self._cluster.masters()
        if not masters:
            raise ConfigError("there is no broker to send it to")
        received = names.sendable_properties(message.properties)
        properties = {name: value for name, value in received.items() if name not in NOT_RESENT - {names.UNIQ_KEY}}
        properties |= {names.RETRY_TOPIC: origin, names.ORIGIN_MESSAGE_ID: message.offset_msg_id}
        name = message.broker_name if message.broker_name in masters else next(iter(masters))
        copy = Message(topic, message.body, properties=properties, flag=message.flag)
        return await self.send_at(masters[name], copy, broker_name=name)

    async def consume_directly_at(self, address: str, group: str, client_id: str, message: MessageExt) -> DirectResult:
        """Have a running consumer's listener called with this message now; the group's offset stays as it is.

        `address`: the broker that stored it. ResponseError when the client is not there.
        """
        fields = {"consumerGroup": group, "clientId": client_id, "msgId": message.offset_msg_id}
        answer = await self._calls.call(address, RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, timeout_s=11.0)
        result = fastjson.loads(answer.body)
        return DirectResult(
            str(result.get("consumeResult")), int(result.get("spentTimeMills") or 0), result.get("remark")
        )
