"""Sending payloads of one type to one topic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypedDict, TypeVar, Unpack

from gantrymq.app.payloads import encode
from gantrymq.client.results import SendResult
from gantrymq.errors import ConfigError, WrongType
from gantrymq.message.headers import HeaderValue
from gantrymq.message.model import Message

T = TypeVar("T")


class MessageKeywords(TypedDict, total=False):
    """What a message has beside its body; see Message."""

    tags: str | None
    keys: str | Sequence[str]
    headers: Mapping[str, HeaderValue] | None
    properties: dict[str, str] | None
    delay_seconds: float | None
    deliver_at: float | datetime | None


class Sends(Protocol):
    """What a publisher sends through: a Producer, or memory."""

    async def send(
        self, message: Message, *, sharding_key: str | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Send one message; return when a broker has stored it."""

    async def send_soon(self, message: Message, *, sharding_key: str | None = None) -> asyncio.Future[SendResult]:
        """Have a message sent with others; return the future of its result or failure."""


class Publisher(Generic[T]):
    """Sends payloads of one type: `await orders.send(Order(7), keys="order-7")`.

    A payload is written as `App` reads it. WrongType when it is of another class, PayloadError when it can't be
    written.
    """

    def __init__(
        self,
        topic: str,
        kind: type[T],
        running: Callable[[], tuple[Sends, asyncio.AbstractEventLoop]],
    ) -> None:
        self.topic: str = topic
        self.kind: type[T] = kind
        self._running = running

    def message(self, payload: T, **keywords: Unpack[MessageKeywords]) -> Message:
        """The message, not sent."""
        if isinstance(self.kind, type) and not isinstance(payload, self.kind):
            raise WrongType(f"{self.topic}: {self.kind.__name__} is published here, not {type(payload).__name__}")
        return Message(self.topic, encode(payload), **keywords)

    async def send(
        self,
        payload: T,
        *,
        sharding_key: str | None = None,
        timeout_s: float | None = None,
        **keywords: Unpack[MessageKeywords],
    ) -> SendResult:
        """Send and wait until the broker stored it; as Producer.send."""
        sends, _ = self._running()
        return await sends.send(self.message(payload, **keywords), sharding_key=sharding_key, timeout_s=timeout_s)

    async def send_soon(
        self, payload: T, *, sharding_key: str | None = None, **keywords: Unpack[MessageKeywords]
    ) -> asyncio.Future[SendResult]:
        """Have it sent in a batch with others; as Producer.send_soon."""
        sends, _ = self._running()
        return await sends.send_soon(self.message(payload, **keywords), sharding_key=sharding_key)

    def send_blocking(
        self,
        payload: T,
        *,
        sharding_key: str | None = None,
        timeout_s: float | None = None,
        **keywords: Unpack[MessageKeywords],
    ) -> SendResult:
        """As `send`, from a plain handler or another thread. ConfigError on the event loop, which it would block."""
        sends, loop = self._running()
        try:
            is_on_loop = asyncio.get_running_loop() is loop
        except RuntimeError:
            is_on_loop = False
        if is_on_loop:
            raise ConfigError("send_blocking would block the event loop: await send")
        message = self.message(payload, **keywords)
        sending = sends.send(message, sharding_key=sharding_key, timeout_s=timeout_s)
        return asyncio.run_coroutine_threadsafe(sending, loop).result()  # send itself is bounded
