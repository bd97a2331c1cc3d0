"""messages, for threads.

Written from gantrymq.client.admin.messages, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gantrymq.client.admin.messages import LONG_MAX, MessageAdmin
from gantrymq.client.admin.results import Delivery, DirectResult, MessageTrace
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.client.results import LostMessage, SendResult
from gantrymq.message.model import Message, MessageExt
from gantrymq.message.topics import TRACE_TOPIC


class SyncMessageAdmin(BlockingPart[MessageAdmin]):
    """`admin.messages`. Calls that end in _at speak to one broker, the others find it."""

    def view_at(self, address: str, offset: int) -> MessageExt:
        """The message at a commit log offset (the second half of an offset message id). RecordError: it is damaged."""
        return self._run(self._part().view_at(address, offset))

    def query_at(
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
        return self._run(
            self._part().query_at(address, topic, key, max_messages, begin_ms, end_ms, unique=unique, on_lost=on_lost)
        )

    def pull_at(
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
        return self._run(self._part().pull_at(address, topic, queue_id, offset, max_messages, on_lost=on_lost))

    def send_at(self, address: str, message: Message, queue_id: int = 0, *, broker_name: str = "") -> SendResult:
        """Store one message in a queue of this broker. The result names the queue's broker as `broker_name` says."""
        return self._run(self._part().send_at(address, message, queue_id, broker_name=broker_name))

    def earliest_store_time_at(self, address: str, topic: str, queue_id: int) -> int:
        """Store time (ms) of the oldest message of the queue, -1 when it is empty."""
        return self._run(self._part().earliest_store_time_at(address, topic, queue_id))

    def find_by_key(
        self, topic: str, key: str, *, max_messages: int = 64, begin_ms: int = 0, end_ms: int = LONG_MAX
    ) -> list[MessageExt]:
        """The messages with this key at any broker of the topic, oldest first. RouteNotFound: no such topic."""
        return self._run(
            self._part().find_by_key(topic, key, max_messages=max_messages, begin_ms=begin_ms, end_ms=end_ms)
        )

    def find_by_id(self, topic: str, message_id: str) -> MessageExt | None:
        """The message with this id, an offset id or a unique one; None when there is none (any more).

        An id is taken for an offset id only when a broker of this cluster has the address in it.
        """
        return self._run(self._part().find_by_id(topic, message_id))

    def read_queue_at(
        self,
        address: str,
        topic: str,
        queue_id: int,
        begin: int,
        end: int | None = None,
        *,
        broker_name: str = "",
        on_lost: Callable[[LostMessage], object] | None = None,
    ) -> Iterator[MessageExt]:
        """The messages of a queue from offset `begin` on, up to before `end` (None: to where it ends now).

        on_lost: called with each that is damaged.
        """
        return self._each(
            self._part().read_queue_at(address, topic, queue_id, begin, end, broker_name=broker_name, on_lost=on_lost)
        )

    def trace(self, message_id: str, *, topic: str = TRACE_TOPIC) -> MessageTrace:
        """What clients with tracing on told about the message (its unique id). RouteNotFound: no trace topic."""
        return self._run(self._part().trace(message_id, topic=topic))

    def deliveries(self, message: MessageExt) -> list[Delivery]:
        """For each group of the message's topic whether it has consumed it, as far as offsets tell."""
        return self._run(self._part().deliveries(message))

    def resend(self, message: MessageExt, *, topic: str | None = None) -> SendResult:
        """Send a copy: a new message with the same body, keys, tag and free properties.

        To `topic`, else to where it belonged: a dead letter or a retry goes to its original topic. ConfigError when
        that can't be told.
        """
        return self._run(self._part().resend(message, topic=topic))

    def put_back(self, message: MessageExt, group: str) -> SendResult:
        """Send a dead letter of the group to this group alone, by its retry topic: it has all its tries before it.

        The message keeps its unique id. By the broker that stored the letter, which has the group's retry topic, if
        its name is known. ConfigError when the letter does not say where it came from.
        """
        return self._run(self._part().put_back(message, group))

    def consume_directly_at(self, address: str, group: str, client_id: str, message: MessageExt) -> DirectResult:
        """Have a running consumer's listener called with this message now; the group's offset stays as it is.

        `address`: the broker that stored it. ResponseError when the client is not there.
        """
        return self._run(self._part().consume_directly_at(address, group, client_id, message))
