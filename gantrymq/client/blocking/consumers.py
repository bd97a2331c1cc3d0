"""Consumers for threads: the async ones, run on the event loop that all blocking clients share in one thread.

Every call is handed to that loop and waited for; nothing is decided here. Listeners of a SyncPushConsumer are plain
functions; they run in the consumer's own threads and may use blocking clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Unpack

from gantrymq.client.blocking.base import BlockingClient, waited_for
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.options import PullConsumerKeywords, PushConsumerKeywords
from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.consume.subscribing import Subscribing
from gantrymq.client.pop.options import PopConsumerKeywords
from gantrymq.client.pop.pop_consumer import PopConsumer
from gantrymq.client.pop.serving import CONCURRENCY
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

    reply: Final = waited_for(PushConsumer.reply)

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

    queues: Final = waited_for(PullConsumer.queues)
    poll: Final = waited_for(PullConsumer.poll)

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

    commit: Final = waited_for(PullConsumer.commit)
    committed: Final = waited_for(PullConsumer.committed)
    seek: Final = waited_for(PullConsumer.seek)
    seek_to_begin: Final = waited_for(PullConsumer.seek_to_begin)
    seek_to_end: Final = waited_for(PullConsumer.seek_to_end)
    offset_at: Final = waited_for(PullConsumer.offset_at)

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

    poll: Final = waited_for(PopConsumer.poll)

    @property
    def held(self) -> int:
        """How many messages were polled and are not acknowledged, as far as their leases are renewed."""
        return self._client.held

    ack: Final = waited_for(PopConsumer.ack)
    change_invisible_time: Final = waited_for(PopConsumer.change_invisible_time)
    bury: Final = waited_for(PopConsumer.bury)

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
