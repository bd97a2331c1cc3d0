"""App: functions that consume, publishers, and the clients that serve them, run together.

app = App("127.0.0.1:9876")
paid = app.publisher("orders-paid", Order)

@app.consumer("orders", group="billing")
async def bill(order: Order) -> None:
    await paid.send(order, keys=order.id)

sys.exit(asyncio.run(app.run()))           # or: python -m gantrymq run shop:app
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, Unpack, cast

from gantrymq.app.handlers import Handler, HandlerGroup, HandlerKeywords
from gantrymq.app.publishers import Publisher, Sends
from gantrymq.client.connection.stop_signals import StopSignals
from gantrymq.client.consume.options import PushConsumerKeywords, PushConsumerOptions
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.consume.subscription import parse_subscription
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords, ProducerOptions
from gantrymq.client.produce.producer import Producer
from gantrymq.errors import ClientClosed, ConfigError
from gantrymq.message.topics import check_topic, dlq_topic

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Lifespan = Callable[["App"], AbstractAsyncContextManager[object]]
# Of a producer's options those that a consumer has, too: how to connect, and what goes around messages.
SHARED = (
    "instance_name", "namespace", "credentials", "tls", "serialize_type", "trace", "trace_topic", "trace_sample",
    "interceptors",
)  # fmt: skip


class App:
    """An application's consumers and publishers. Takes a producer's options; consumers connect in the same way, and
    have its interceptors and trace.

    lifespan: an async context manager around everything, for what handlers need: `lifespan(app)`.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str = DEFAULT_GROUP,
        lifespan: Lifespan | None = None,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        self.options: ProducerOptions = ProducerOptions(name_servers=name_servers, group=group, **keywords)
        self.groups: dict[str, HandlerGroup] = {}
        self._name_servers = name_servers
        self._producer_keywords = keywords
        given: dict[str, Any] = {**keywords}
        self._shared = {name: given[name] for name in SHARED if name in given}
        self._lifespan = lifespan
        self._sends: Sends | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stack: AsyncExitStack | None = None
        self._consumers: list[PushConsumer] = []
        self._exit_code = 0

    # -- what it consists of ------------------------------------------------------------------------------------------

    def consumer(
        self,
        topic: str,
        expression: str = "*",
        *,
        group: str,
        sql: str | None = None,
        **options: Unpack[HandlerKeywords],
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Have the function called with each message of the topic: "*", "TagA || TagB", or with `sql` a condition.

        Its parameters are a payload, of the type its annotation says, and the MessageExt, if it has one annotated so.
        bytes is the body, str its text; anything else is JSON: without an annotation as it is, otherwise checked and
        made a dataclass, a model of pydantic, a struct of msgspec, or a plain type. A body that is none is a dead
        letter at once. What the function returns or raises means what a listener's does.

        options: of the group's push consumer; all handlers of a group have the same. A function may have several
        decorators. ConfigError for what can't be.
        """
        check_topic(topic)
        parse_subscription(topic, expression, 0, sql=sql)
        PushConsumerOptions(name_servers=self._name_servers, group=group, **self._consumer_keywords(options))
        if self._sends is not None:
            raise ConfigError("the application runs: consumers are declared before")

        def decorate(function: Callable[P, R]) -> Handler[P, R]:
            inner = function.function if isinstance(function, Handler) else function
            handler: Handler[P, R] = Handler(inner, topic, group, expression, sql)
            self.groups.setdefault(group, HandlerGroup(group, options)).add(handler, options)
            return handler

        return decorate

    def dead_letters(
        self, group: str, *, by: str | None = None, **options: Unpack[HandlerKeywords]
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Have the function called with each dead letter of the group. by: the group that consumes them, by default
        "GROUP-dead-letters"."""
        return self.consumer(dlq_topic(group), group=by or f"{group}-dead-letters", **options)

    def publisher(self, topic: str, kind: type[T]) -> Publisher[T]:
        """What sends payloads of this type to the topic."""
        check_topic(topic)
        return Publisher(topic, kind, self._running)

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Enter the lifespan, then open the publishers' producer, then join the groups. Once closed it can be started
        again."""
        await self.start_with(self._open_clients)

    async def start_with(self, open_clients: Callable[[AsyncExitStack], Any]) -> None:
        """Start with other clients: memory does that. open_clients: says through what publishers send."""
        if self._stack is not None:
            raise ConfigError("the application runs already")
        async with AsyncExitStack() as stack:
            if self._lifespan is not None:
                await stack.enter_async_context(self._lifespan(self))
            self._loop = asyncio.get_running_loop()
            stack.callback(self._forget_clients)
            await open_clients(stack)
            self._stack = stack.pop_all()

    async def _open_clients(self, stack: AsyncExitStack) -> None:
        producer = Producer(self._name_servers, group=self.options.group, **self._producer_keywords)
        await stack.enter_async_context(producer)
        self.send_through(producer)
        self._exit_code = 0
        stack.push_async_callback(self._close_consumers)
        for group in self.groups.values():
            keywords = self._consumer_keywords(group.options)
            consumer = PushConsumer(self._name_servers, group=group.name, listener=group.listener(), **keywords)
            for handler in group:
                consumer.subscribe(handler.topic, handler.expression, sql=handler.sql)
            await consumer.start()
            self._consumers.append(consumer)

    def _consumer_keywords(self, options: HandlerKeywords) -> PushConsumerKeywords:
        return cast(PushConsumerKeywords, {**self._shared, **options})

    async def _close_consumers(self) -> None:
        """All at once: each waits for its calls in progress."""
        consumers, self._consumers = self._consumers, []
        outcomes = await asyncio.gather(*(each.close() for each in consumers), return_exceptions=True)
        self._exit_code = max((each.exit_code for each in consumers), default=0)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def send_through(self, sends: Sends) -> None:
        """Have publishers send through this from now on."""
        self._sends = sends

    def _forget_clients(self) -> None:
        self._sends, self._loop = None, None

    async def close(self) -> None:
        """Leave the groups when the calls in progress have ended, then close the producer, then leave the lifespan."""
        stack, self._stack = self._stack, None
        if stack is not None:
            await stack.aclose()

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT, then close; in the main thread: `sys.exit(asyncio.run(app.run()))`.

        Returns the exit code: 0, or 1 when a call did not end in time; its message comes again. A second signal ends
        the process at once.
        """
        if not self.groups:
            raise ConfigError("nothing to consume: the application has no consumer")
        stopped, loop = asyncio.Event(), asyncio.get_running_loop()

        def stop() -> None:
            for consumer in self._consumers:
                consumer.begin_nothing_more()
            loop.call_soon_threadsafe(stopped.set)

        async with self:
            with StopSignals(stop):
                await stopped.wait()
        return self._exit_code

    def _running(self) -> tuple[Sends, asyncio.AbstractEventLoop]:
        if self._sends is None or self._loop is None:
            raise ClientClosed("the application does not run: publishers send while it does")
        if self._loop.is_closed():
            raise ClientClosed("the application was started in an event loop that is closed")
        return self._sends, self._loop
