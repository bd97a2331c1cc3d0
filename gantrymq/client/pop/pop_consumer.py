"""PopConsumer: a consumer of leased messages, each acknowledged by itself (RocketMQ 5's POP).

    async with PopConsumer("host:port", group="g") as consumer:
        consumer.subscribe("jobs")
        for message in await consumer.poll():
            await consumer.ack(message)            what is not acknowledged is delivered again

The broker keeps what is delivered to whom: any member gets any message, there are no queues to share out and no
rebalancing. A slow message holds up no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from gantrymq.client.connection.background import Background
from gantrymq.client.connection.option_checks import check_listener
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.listener_calls import Listener
from gantrymq.client.consume.subscribing import Subscribing
from gantrymq.client.pop.leases import Leases
from gantrymq.client.pop.options import INVISIBLE_S_MAX, PopConsumerKeywords, PopConsumerOptions
from gantrymq.client.pop.polling import Polling
from gantrymq.client.pop.serving import CONCURRENCY, Serving
from gantrymq.client.produce.trace import ConsumeTracer, dispatcher_of
from gantrymq.errors import ConfigError
from gantrymq.message.model import MessageExt
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData

POLL_S = 5.0


class PopConsumer(Subscribing):
    """Polls leased messages for a group. batch_size: at most so many a poll, all of one topic. invisible_s: how long
    they are leased; leases are renewed for renew_for_s after the poll. held_max: of messages that are not acknowledged,
    `poll` returns no further ones. `consume_from`: where a new group begins (`consume_from_ms` with TIMESTAMP).
    close_wait_s, interceptors: of `serve` and `run`. trace: tell `trace_topic` when messages are polled and how that
    ended, `trace_sample` of them. Also instance_name, namespace, credentials, tls and serialize_type.
    PopConsumerOptions has the defaults.

    ordered: the messages of a queue in their order, to any member; a poll returns those of one queue, and further ones
    of it come when these are acknowledged. max_reconsume_times: until one is a dead letter; None: never.

    A message that is not acknowledged in its time is delivered again to any member; without order, it is a dead letter
    after the retries of its group. A group either pops a topic or pulls it (PushConsumer, PullConsumer), never both at
    a time. Brokers of RocketMQ 4 can't: ResponseError.

    Every method may be called by several tasks at once. `close` has others get what was polled and not
    acknowledged.
    """

    def __init__(
        self, name_servers: str | Sequence[str], *, group: str, **keywords: Unpack[PopConsumerKeywords]
    ) -> None:
        options = PopConsumerOptions(name_servers=name_servers, group=group, **keywords)
        super().__init__(ClientSession(options, heartbeat=self._heartbeat))
        self.group = group
        self._options = options
        self._background = Background()
        self._traces = dispatcher_of(self._session, options)
        tracer = None if self._traces is None else ConsumeTracer(self._traces, group)
        self._leases = Leases(self._session, options, tracer)
        self._polling = Polling(self._session, options, self._leases, self._subscriptions, self._background)
        self._serving: Serving | None = None
        self._is_stopped = False  # before it served

    # -- life ---------------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        self._session.open()
        if self._options.renew_for_s:
            self._background.start(self._leases.keep_renewing(), "renew leases")
        if self._traces is not None:
            self._background.start(self._traces.run(), "send traces")

    async def _shut_down(self) -> None:
        await self._background.close()
        await self._polling.close()
        await self._leases.give_back()
        if self._traces is not None:
            await self._traces.flush()
        await self._session.close(consumer_group=self.group)

    def abandon(self) -> None:
        """Forget the connections, whose event loop is gone: in a child that a fork made they are the parent's."""
        self._polling.abandon()
        super().abandon()

    def _heartbeat(self, client_id: str) -> HeartbeatData:
        consumer = ConsumerData(
            self.group,
            consume_type="CONSUME_POP",
            consume_from_where=self._options.consume_from.value,
            subscription_data_set=list(self._subscriptions.values()),
        )
        return HeartbeatData(client_id, [], [consumer])

    def _subscriptions_changed(self) -> None:
        if self._session.is_open:
            self._background.start(self._session.send_heartbeats(), "tell the subscription")

    # -- messages -----------------------------------------------------------------------------------------------------

    async def poll(self, timeout_s: float = POLL_S) -> list[MessageExt]:
        """Messages that are leased to this consumer, all of one topic; an empty list when none come in time, or
        held_max are not acknowledged.

        ResponseError when a broker refuses: the group pulls the topic, the account may not, the condition is wrong.
        """
        self._session.require_open()
        if not self._subscriptions:
            raise ConfigError("nothing to poll: call subscribe first")
        found = await self._polling.poll(timeout_s, self._options.batch_size)
        if not found:
            self._session.require_open()
        return found

    @property
    def held(self) -> int:
        """How many messages were polled and are not acknowledged, as far as their leases are renewed."""
        return len(self._leases)

    async def ack(self, *messages: MessageExt) -> None:
        """They are done with; several are one request a broker. While a broker can't be reached this is tried again,
        for invisible_s.

        LeaseEnded when the message was leased no longer; of several, when none was.
        """
        self._session.require_open()
        await self._leases.acknowledge(messages)

    async def change_invisible_time(self, message: MessageExt, invisible_s: float) -> None:
        """Have it delivered again after so long, from now on, unless it is acknowledged by then; 0: at once. Its lease
        is not renewed any more. LeaseEnded when it was leased no longer."""
        self._session.require_open()
        if not 0 <= invisible_s <= INVISIBLE_S_MAX:
            raise ConfigError(f"invisible_s={invisible_s}: it must be from 0 to {INVISIBLE_S_MAX:g}")
        await self._leases.change_invisible_time(message, invisible_s)

    async def bury(self, message: MessageExt) -> None:
        """Make it a dead letter of the group at once, because trying again can't help."""
        self._session.require_open()
        await self._leases.bury(message)

    # -- calling a listener -------------------------------------------------------------------------------------------

    async def serve(self, listener: Listener, *, concurrency: int = CONCURRENCY) -> bool:
        """Give messages to a listener until `stop`, `concurrency` calls at once. It is one of a PushConsumer, and gets
        what one poll returned: its messages are acknowledged when it returns, later ones with LATER, RetryLater or an
        exception are delivered again (ordered: after suspend_s), those with DeadLetter are dead letters.

        Returns whether all calls have ended in close_wait_s. ConfigError when it serves already.
        """
        check_listener(listener)
        if not isinstance(concurrency, int) or concurrency < 1:
            raise ConfigError(f"concurrency={concurrency!r}: it must be at least 1")
        self._session.require_open()
        if self._serving is not None:
            raise ConfigError("this consumer gives its messages to a listener already")
        if self._is_stopped:
            self._is_stopped = False
            return True
        self._serving = Serving(self, self._options, listener, concurrency, self._session.outages)
        try:
            return await self._serving.run()
        finally:
            self._serving = None
            self._is_stopped = False

    def stop(self) -> None:
        """Have `serve` begin no further call, and return; the next one, if none runs. From a signal's handler and other
        threads, too."""
        self._is_stopped = True
        if self._serving is not None:
            self._serving.stop()

    async def run(self, listener: Listener, *, concurrency: int = CONCURRENCY) -> int:
        """Start, `serve` until SIGTERM or SIGINT, then close; in the main thread:
        `sys.exit(asyncio.run(consumer.run(listener)))`.

        Returns the exit code: 0, or 1 when some call did not end in close_wait_s; its messages are delivered again. A
        second signal ends the process at once.
        """
        async with self:
            with StopSignals(self.stop):
                has_ended = await self.serve(listener, concurrency=concurrency)
        return 0 if has_ended else 1
