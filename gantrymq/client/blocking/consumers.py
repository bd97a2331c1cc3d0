"""Consumers for threads: the async ones, run on the event loop that all blocking clients share in one thread.

Every call is handed to that loop and waited for; nothing is decided here. Listeners of a SyncPushConsumer are plain
functions; they run in the consumer's own threads and may use blocking clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Unpack

from gantrymq.client.blocking.base import BlockingClient
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.options import PullConsumerKeywords, PushConsumerKeywords
from gantrymq.client.consume.pull_consumer import POLL_S, PullConsumer
from gantrymq.client.consume.push_consumer import REPLY_TIMEOUT_S, PushConsumer
from gantrymq.client.consume.subscribing import Subscribing
from gantrymq.client.pop import pop_consumer
from gantrymq.client.pop.options import PopConsumerKeywords
from gantrymq.client.pop.pop_consumer import PopConsumer
from gantrymq.client.pop.serving import CONCURRENCY
from gantrymq.client.results import SendResult
from gantrymq.message.model import MessageExt, MessageQueue


async def _until(event: asyncio.Event) -> None:
    await event.wait()


class _SubscribingClient(BlockingClient):
    """A consumer of any kind."""

    reopens_after_fork = False
    _client: Subscribing

    def subscribe(self, topic: str, expression: str = "*", *, sql: str | None = None) -> None:
        """Consume a topic: "*", "TagA || TagB", or sql="price > 5 AND region = 'eu'". Also while running."""
        self._change(lambda: self._client.subscribe(topic, expression, sql=sql))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. Queues of it that the consumer holds are released in a moment."""
        self._change(lambda: self._client.unsubscribe(topic))


class SyncPushConsumer(_SubscribingClient):
    """PushConsumer for threads; takes the same arguments, with a plain function as listener."""

    _client: PushConsumer

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        listener: Listener,
        **keywords: Unpack[PushConsumerKeywords],
    ) -> None:
        super().__init__(lambda: PushConsumer(name_servers, group=group, listener=listener, **keywords))

    def run(self) -> int:
        """Consume until SIGTERM or SIGINT, then close; in the main thread: `sys.exit(consumer.run())`.

        Listener calls in progress may end (close_wait_s), and what was handled is committed. Returns the exit code: 0,
        or 1 when some call did not end in time; its messages come again. A second signal ends the process at once.
        """
        with self:
            stopped = asyncio.Event()

            def stop() -> None:
                self._client.begin_nothing_more()
                shared_loop.call_soon(stopped.set)

            with StopSignals(stop):
                self._run(_until(stopped))
        return self._client.exit_code

    @property
    def exit_code(self) -> int:
        """What `run` returns, once the consumer is closed."""
        return self._client.exit_code

    def reply(self, request: MessageExt, body: bytes, *, timeout_s: float = REPLY_TIMEOUT_S) -> SendResult:
        """Answer a request (see Producer.request) that the listener was given."""
        return self._run(self._client.reply(request, body, timeout_s=timeout_s))

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return self._client.assigned_queues


class SyncPullConsumer(_SubscribingClient):
    """PullConsumer for threads; takes the same arguments. Used by one thread at a time."""

    _client: PullConsumer

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str, **keywords: Unpack[PullConsumerKeywords]
    ) -> None:
        super().__init__(lambda: PullConsumer(name_servers, group=group, **keywords))

    def assign(self, queues: Iterable[MessageQueue], expression: str = "*") -> None:
        """Read these queues, without regard to other readers; replaces what was assigned before. Returns when they are
        read."""
        self._run(self._client.assign(list(queues), expression))

    def queues(self, topic: str) -> list[MessageQueue]:
        """Every queue of the topic that can be read. RouteNotFound when there is no such topic."""
        return self._run(self._client.queues(topic))

    def poll(self, timeout_s: float = POLL_S) -> list[MessageExt]:
        """The next messages of some queue, an empty list when none come in time. The last poll's are finished."""
        return self._run(self._client.poll(timeout_s))

    def __iter__(self) -> Iterator[MessageExt]:
        """Message by message, for ever. See PullConsumer.__aiter__."""
        while True:
            batch = self._run(self._client.poll_one_by_one())
            if batch is not None:
                yield from batch.one_by_one()

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Neither poll nor pull these queues until `resume`."""
        paused = list(queues)
        self._change(lambda: self._client.pause(paused))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Undo `pause`."""
        resumed = list(queues)
        self._change(lambda: self._client.resume(resumed))

    def commit(self, offsets: Mapping[MessageQueue, int] | None = None) -> None:
        """Write that every message given so far is finished, the last one too; or write these offsets: of each queue
        the next one that the group will consume, so that of the last finished message plus one.

        ConfigError when a queue is not assigned to this consumer or an offset is outside of what it was given.
        """
        self._run(self._client.commit(offsets))

    def committed(self, queue: MessageQueue) -> int | None:
        """The group's next offset in the queue as it is written, None when it has none."""
        return self._run(self._client.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at this offset in a queue this consumer reads. ConfigError when it does not, or the offset is outside
        the queue."""
        self._run(self._client.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Go on at the oldest message of the queue."""
        self._run(self._client.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Go on with what comes from now on."""
        self._run(self._client.seek_to_end(queue))

    def offset_at(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the message nearest to that store time."""
        return self._run(self._client.offset_at(queue, timestamp_ms))

    @property
    def assigned_queues(self) -> list[MessageQueue]:
        """The queues this consumer reads right now."""
        return self._client.assigned_queues


class SyncPopConsumer(_SubscribingClient):
    """PopConsumer for threads; takes the same arguments. Any number of threads may use it at once."""

    _client: PopConsumer

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str, **keywords: Unpack[PopConsumerKeywords]
    ) -> None:
        super().__init__(lambda: PopConsumer(name_servers, group=group, **keywords))

    def poll(self, timeout_s: float = pop_consumer.POLL_S) -> list[MessageExt]:
        """Messages that are leased to this consumer, all of one topic; an empty list when none come in time, or
        held_max are not acknowledged. Raises what PopConsumer.poll does."""
        return self._run(self._client.poll(timeout_s))

    @property
    def held(self) -> int:
        """How many messages were polled and are not acknowledged, as far as their leases are renewed."""
        return self._client.held

    def ack(self, *messages: MessageExt) -> None:
        """They are done with. LeaseEnded when the message was leased no longer; of several, when none was."""
        self._run(self._client.ack(*messages))

    def change_invisible_time(self, message: MessageExt, invisible_s: float) -> None:
        """Have it delivered again after so long, from now on, unless it is acknowledged by then; 0: at once."""
        self._run(self._client.change_invisible_time(message, invisible_s))

    def bury(self, message: MessageExt) -> None:
        """Make it a dead letter of the group at once, because trying again can't help."""
        self._run(self._client.bury(message))

    def serve(self, listener: Listener, *, concurrency: int = CONCURRENCY) -> bool:
        """Give messages to a listener, a plain function, in threads of the consumer, until `stop`. Whether all calls
        have ended in close_wait_s. PopConsumer.serve says more."""
        return self._run(self._client.serve(listener, concurrency=concurrency))

    def stop(self) -> None:
        """Have `serve` begin no further call, and return. From another thread, or a signal's handler."""
        self._client.stop()

    def run(self, listener: Listener, *, concurrency: int = CONCURRENCY) -> int:
        """Start, `serve` until SIGTERM or SIGINT, then close; in the main thread:
        `sys.exit(consumer.run(listener))`. Returns the exit code: 0, or 1 when some call did not end in
        close_wait_s."""
        with self, StopSignals(self._client.stop):
            has_ended = self.serve(listener, concurrency=concurrency)
        return 0 if has_ended else 1
