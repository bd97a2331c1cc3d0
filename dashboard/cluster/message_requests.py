"""The gateway's messages: send one, look at the newest, find by key or id, follow what arrives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from dashboard.cluster import browse
from dashboard.cluster.calls import CALL_ERRORS, CALLS_AT_ONCE, ClusterCalls, refusals_of
from dashboard.cluster.errors import (
    BrokerUnreachable,
    MessageDamaged,
    MessageNotFound,
    NotAllowed,
    NotWritable,
    Refused,
    TopicNotFound,
    explain,
)
from dashboard.cluster.message_scan import ANY_TIME, TimeSpan
from dashboard.cluster.topic_requests import TopicCalls
from dashboard.cluster.values import BrokerRef, MessagePage, PartialFailure, QueueExtent, TopicDetail
from dashboard.language.sentences import gettext
from dashboard.limits.names import current
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.results import LostMessage, SendResult
from gantrymq.errors import MessageRejected, ResponseError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import may_clients_send_to
from gantrymq.remoting.bodies import PERM_WRITE
from gantrymq.remoting.codes import ResponseCode

INDEX_STEP_MS = 1000  # the index knows whole seconds


class MessageCalls:
    """`gateway.messages`: what pages and sockets ask about messages."""

    def __init__(self, calls: ClusterCalls, topics: TopicCalls) -> None:
        self._calls = calls
        self._topics = topics

    async def send(
        self, message: Message, *, broker_name: str | None = None, queue_id: int | None = None
    ) -> SendResult:
        """Send one message, to a writable queue chosen here unless given. Raises NotAllowed, NotWritable, Refused."""
        if not may_clients_send_to(message.topic):
            raise NotAllowed(gettext("%(topic)s does not accept messages from clients.") % {"topic": message.topic})
        detail = await self._topics.get(message.topic)
        writable = [
            item
            for item in detail.settings
            if item.perm & PERM_WRITE and item.write_queues and broker_name in (None, item.broker_name)
        ]
        if not writable:
            raise NotWritable(
                gettext("%(topic)s does not accept messages there: it is read-only, or has no queue to write to.")
                % {"topic": message.topic}
            )
        # The emptiest broker first, then a queue in turn: test messages spread as a producer's would.
        turn = detail.put_total
        target = writable[turn % len(writable)]
        queue = queue_id if queue_id is not None else (turn // len(writable)) % target.write_queues
        if queue >= target.write_queues:
            raise Refused(
                gettext("%(broker_name)s has queues 0 to %(value)s.")
                % {"broker_name": target.broker_name, "value": target.write_queues - 1}
            )
        address = detail.addresses[target.broker_name]
        with refusals_of(target.broker_name):
            try:
                return await self._calls.call(
                    lambda admin: admin.messages.send_at(address, message, queue, broker_name=target.broker_name)
                )
            except MessageRejected as exc:  # by the client's own rules: no broker was asked
                raise NotAllowed(explain(exc)) from exc

    async def newest(
        self, detail: TopicDetail, *, limit: int, before: dict[str, int] | None = None, queue: str | None = None
    ) -> MessagePage:
        """The newest messages over all queues, or those older than the cursor `before` (queue key to offset)."""
        started = time.perf_counter()
        spans = browse.spans(detail.queues, limit, before or {}, queue)
        gate = asyncio.Semaphore(CALLS_AT_ONCE)
        failures: list[PartialFailure] = []
        damaged: list[LostMessage] = []

        async def read(span: browse.Span) -> browse.Read:
            async with gate:
                try:
                    messages = await self._pull_span(detail, span, damaged)
                except CALL_ERRORS as exc:
                    failures.append(browse.queue_failure(span, exc))
                    messages = []
                return browse.Read(span, messages)

        reads = await asyncio.gather(*(read(span) for span in spans))
        messages, reached = browse.merge(reads, limit)
        older = browse.next_cursor(detail.queues, before or {}, reached) if messages else None
        if messages:  # those further down come with the messages beside them
            damaged = [lost for lost in damaged if lost.queue_offset >= reached.get(_queue_key(lost), 0)]
        return MessagePage(
            messages=tuple(messages),
            older=browse.write_cursor(older) if older else None,
            scanned=sum(len(item.messages) for item in reads),
            took_ms=(time.perf_counter() - started) * 1000,
            at=self._calls.clock(),
            failures=tuple(detail.failures) + tuple(failures),
            damaged=tuple(damaged),
        )

    async def find(
        self, detail: TopicDetail, text: str, *, limit: int, queue: str | None = None, span: TimeSpan = ANY_TIME
    ) -> MessagePage:
        """The topic's messages with this key, unique id or offset id, newest first; `queue`: of this queue only.

        Of many with one key the newest of the span come, `limit` of each broker at most.
        """
        started = time.perf_counter()
        begin_ms = max(0, (span.since_ms or 0) - INDEX_STEP_MS)
        last_ms = int(self._calls.clock() * 1000) + 60_000 if span.until_ms is None else span.until_ms
        end_ms = max(0, last_ms) + INDEX_STEP_MS
        brokers = [BrokerRef(name, address, "") for name, address in detail.addresses.items()]

        damaged: dict[tuple[str, int], LostMessage] = {}

        async def ask(admin: AdminClient, broker: BrokerRef) -> list[MessageExt]:
            def lose(lost: LostMessage) -> None:
                damaged[broker.name, lost.physical_offset] = _at_broker(lost, broker.name)

            keyed, unique = await asyncio.gather(
                *(
                    admin.messages.query_at(
                        broker.address, detail.name, text, limit, begin_ms, end_ms, unique=unique, on_lost=lose
                    )
                    for unique in (False, True)
                )
            )
            return keyed + unique

        (answers, failures), (located, more) = await asyncio.gather(
            self._calls.ask_brokers(brokers, ask), self._at_offset_id(text)
        )
        found = {}
        for message in [*(_named(each, broker.name) for broker, messages in answers for each in messages), *located]:
            if not span.has(message.store_timestamp):
                continue
            if message.topic == detail.name and queue in (None, f"{message.broker_name}.{message.queue_id}"):
                found[message.broker_name, message.physical_offset] = message
        shown = sorted(found.values(), key=browse.newest_first)[:limit]
        elsewhere = next((message for message in located if message.topic != detail.name), None)
        return MessagePage(
            tuple(shown), None, len(found), (time.perf_counter() - started) * 1000, self._calls.clock(),
            tuple(detail.failures) + tuple(failures) + tuple(more), elsewhere,
            tuple(lost for lost in damaged.values() if queue in (None, _queue_key(lost))),
        )  # fmt: skip

    async def with_unique_id(self, topics: Sequence[str], msg_id: str) -> tuple[list[MessageExt], list[PartialFailure]]:
        """The messages with this unique id of the first topic that has one; and the brokers that did not answer.

        A broker is asked for one topic after the other: the index finds a topic's message by both names.
        """

        async def ask(admin: AdminClient, broker: BrokerRef) -> list[MessageExt]:
            for topic in topics:
                try:
                    found = await admin.messages.query_at(broker.address, topic, msg_id, unique=True)
                except ResponseError as exc:
                    if exc.code != ResponseCode.TOPIC_NOT_EXIST:  # it is at another broker
                        raise
                    continue
                if found:
                    return found
            return []

        answers, failures = await self._calls.ask_brokers((await self._calls.cluster()).brokers, ask)
        found = [_named(message, broker.name) for broker, messages in answers for message in messages]
        best = min((topics.index(message.topic) for message in found), default=0)
        return [message for message in found if message.topic == topics[best]], failures

    async def at_offset_id(self, text: str) -> list[MessageExt]:
        """The message of an offset id; [] when the text is none, or no message of a topic one may see is there."""
        found, _ = await self._at_offset_id(text)
        return found

    async def _at_offset_id(self, text: str) -> tuple[list[MessageExt], list[PartialFailure]]:
        """The message of an offset id, which names a broker of this cluster and a place in its log."""
        try:
            ip, port, offset = decode_offset_message_id(text)
        except ValueError:
            return [], []
        address = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
        holders = [broker for broker in (await self._calls.cluster()).brokers if broker.address == address]

        async def ask(admin: AdminClient, broker: BrokerRef) -> list[MessageExt]:
            try:
                return [await admin.messages.view_at(broker.address, offset)]
            except ResponseError:  # no record begins there (any more): found nothing is no failure
                return []

        answers, failures = await self._calls.ask_brokers(holders, ask)
        found = [_named(message, broker.name) for broker, messages in answers for message in messages]
        return [message for message in found if current().allows(message.topic)], failures

    async def get(self, topic: str, broker_name: str, queue_id: int, queue_offset: int) -> MessageExt:
        """One message by its place. Raises MessageNotFound when it is not (or no longer) there."""
        cluster = await self._calls.cluster()
        broker = cluster.named(broker_name)
        if broker is None:
            raise TopicNotFound(gettext("There is no broker %(broker_name)s.") % {"broker_name": broker_name})
        damaged: list[LostMessage] = []
        try:
            messages, *_ = await self._calls.call(
                lambda admin: admin.messages.pull_at(
                    broker.address, topic, queue_id, queue_offset, 1, on_lost=damaged.append
                )
            )
        except ResponseError as exc:
            raise MessageNotFound(explain(exc)) from exc
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(f"{broker_name}: {explain(exc)}") from exc
        for lost in damaged:
            raise MessageDamaged(_at_broker(lost, broker_name))
        for message in messages:
            if message.queue_offset == queue_offset:
                return _named(message, broker_name)
        raise MessageNotFound(
            gettext("Queue %(queue_id)s of %(broker_name)s no longer holds offset %(queue_offset)s.")
            % {"queue_id": queue_id, "broker_name": broker_name, "queue_offset": queue_offset}
        )

    async def pull_new(
        self, topic: str, queue: QueueExtent, since: int, limit: int, timeout_s: float
    ) -> tuple[list[MessageExt], list[LostMessage]]:
        """Messages of one queue from offset `since` on, and the damaged ones before them; for the live tail.

        Raises what the client raises.
        """
        cluster = await self._calls.cluster(max_age_s=5.0)
        broker = cluster.named(queue.broker_name)
        if broker is None:
            return [], []
        damaged: list[LostMessage] = []
        for tries in range(1, limit + 1):
            messages, since, *_ = await self._calls.call(
                lambda admin, begin=since: admin.messages.pull_at(  # type: ignore[misc]
                    broker.address, topic, queue.queue_id, begin, limit, on_lost=damaged.append
                ),
                timeout_s,
            )
            if messages or len(damaged) < tries:
                break  # else the first one was damaged: what is behind it
        lost = [_at_broker(each, broker.name) for each in damaged]
        return [_named(message, broker.name) for message in messages], lost

    async def _pull_span(self, detail: TopicDetail, span: browse.Span, damaged: list[LostMessage]) -> list[MessageExt]:
        """The messages of one span of a queue; a broker hands out a limited number of bytes a time, so in rounds."""
        messages: list[MessageExt] = []
        position, rounds = span.start, 0
        address = detail.addresses[span.broker_name]
        while position < span.end and rounds < browse.ROUNDS_MAX:
            found: list[LostMessage] = []  # others read at the same time
            pulled, next_offset, *_ = await self._calls.call(
                lambda admin, begin=position, found=found: admin.messages.pull_at(  # type: ignore[misc]
                    address, detail.name, span.queue_id, begin, span.end - begin, on_lost=found.append
                )
            )
            messages += [_named(message, span.broker_name) for message in pulled if message.queue_offset < span.end]
            if next_offset <= position:
                break
            rounds += not found  # a damaged message is no round: it comes alone
            damaged += [_at_broker(lost, span.broker_name) for lost in found if lost.queue_offset < span.end]
            position = next_offset
        return messages


def _queue_key(lost: LostMessage) -> str:
    return f"{lost.queue.broker_name}.{lost.queue.queue_id}"


def _at_broker(lost: LostMessage, broker_name: str) -> LostMessage:
    return replace(lost, queue=lost.queue._replace(broker_name=broker_name))


def _named(message: MessageExt, broker_name: str) -> MessageExt:
    message.broker_name = broker_name
    return message
