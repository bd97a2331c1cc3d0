"""Functions that consume: what their parameters want, and calling them with a message."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Generic, ParamSpec, TypedDict, TypeVar

from gantrymq.app.payloads import Decoder, decoder_of
from gantrymq.client.consume.listener_calls import Listener, Outcome
from gantrymq.client.consume.options import FlowLimits
from gantrymq.client.consume.rebalance import AllocateStrategy
from gantrymq.client.consume.subscription import ConsumeFrom, MessageModel
from gantrymq.client.results import DeadLetter
from gantrymq.errors import ConfigError, PayloadError
from gantrymq.message.model import MessageExt
from gantrymq.message.topics import is_dlq_topic

P = ParamSpec("P")
R = TypeVar("R")


class HandlerKeywords(TypedDict, total=False):
    """Options of a group's push consumer; PushConsumerOptions says what they mean."""

    model: MessageModel
    consume_from: ConsumeFrom
    consume_from_ms: int | None
    pull_batch: int
    limits: FlowLimits | None
    strategy: AllocateStrategy
    concurrency: int
    ordered: bool
    suspend_s: float
    max_reconsume_times: int | None
    overdue_s: float
    close_wait_s: float


class Handler(Generic[P, R]):
    """A function with a decorator. Called directly it is just the function."""

    def __init__(self, function: Callable[P, R], topic: str, group: str, expression: str, sql: str | None) -> None:
        self.function: Callable[P, R] = function
        self.topic: str = topic
        self.group: str = group
        self.expression: str = expression
        self.sql: str | None = sql
        self.is_async: bool = inspect.iscoroutinefunction(function)
        self._payload, self._message, self._decode = _wanted(function)

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        return self.function(*arguments, **keywords)

    def consume(self, message: MessageExt) -> Outcome:
        """Call the function with what it wants of the message. DeadLetter when the body is no such payload: that would
        not change by trying again."""
        given: dict[str, Any] = {}
        if self._payload is not None:
            try:
                given[self._payload] = self._decode(message.body)
            except PayloadError as exc:
                raise DeadLetter(str(exc)) from exc
        if self._message is not None:
            given[self._message] = message
        call: Callable[..., Any] = self.function
        outcome: Outcome = call(**given)
        return outcome


class HandlerGroup:
    """The handlers of one consumer group, each of its own topic: one push consumer serves them, because the members of
    a group have to subscribe to the same."""

    def __init__(self, name: str, options: HandlerKeywords) -> None:
        self.name: str = name
        self.options: HandlerKeywords = options
        self._handlers: dict[str, Handler[..., Any]] = {}

    def __iter__(self) -> Iterator[Handler[..., Any]]:
        return iter(self._handlers.values())

    def add(self, handler: Handler[..., Any], options: HandlerKeywords) -> None:
        """ConfigError when it does not fit to the group's others."""
        if options != self.options:
            raise ConfigError(f"group {self.name}: its handlers have one consumer, so they all take the same options")
        if handler.topic in self._handlers:
            raise ConfigError(f"group {self.name} has a handler of {handler.topic}: another one needs another group")
        if self._handlers and any(is_dlq_topic(topic) for topic in (handler.topic, *self._handlers)):
            raise ConfigError(f"group {self.name}: a handler of dead letters needs its own group")
        self._handlers[handler.topic] = handler

    def listener(self) -> Listener:
        """What a consumer calls. Plain functions run in its threads, async ones on the loop."""
        if all(handler.is_async for handler in self):

            async def listen(messages: list[MessageExt]) -> Any:
                outcome = self._consume(messages)
                return await outcome if isinstance(outcome, Awaitable) else outcome

            return listen
        return self._consume

    def _consume(self, messages: list[MessageExt]) -> Outcome:
        (message,) = messages
        handler = self._handlers.get(message.topic)
        if handler is None:  # a dead letter that comes again has the topic of its first life
            (handler,) = self._handlers.values()
        return handler.consume(message)


def _wanted(function: Callable[..., Any]) -> tuple[str | None, str | None, Decoder]:
    """The parameter that gets the payload, the one that gets the message, and what makes the payload."""
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise ConfigError(f"{function!r:.60}: a function is wanted")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as exc:
        raise ConfigError(f"{name}: {exc}: annotations name what its module knows") from exc
    payload: str | None = None
    message: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ConfigError(f"{name}: {parameter}: handlers take plain parameters only")
        if hints.get(parameter.name) is MessageExt and message is None:
            message = parameter.name
        elif payload is None:
            payload = parameter.name
        elif parameter.default is parameter.empty:
            raise ConfigError(f"{name}: what is {parameter.name}? A handler takes a payload and a MessageExt")
    if payload is None and message is None:
        raise ConfigError(f"{name}: it takes nothing: a payload, a MessageExt, or both are wanted")
    return payload, message, decoder_of(hints.get(payload, Any) if payload else bytes)
