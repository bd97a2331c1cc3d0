"""Handlers of one topic, called by a push consumer of their own; without handlers a pull consumer is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from faststream._internal.configs import SubscriberSpecificationConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream._internal.endpoint.utils import process_msg
from faststream.exceptions import IncorrectState
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as SpecificationMessage
from faststream.specification.schema import Operation, SubscriberSpec

from gantrymq.client.consume.options import PushConsumerKeywords
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.consume.subscription import is_wanted, parse_subscription
from gantrymq.contrib.faststream.message import (
    Acknowledged,
    Result,
    decode,
    decode_batch,
    parse_batch,
    parse_message,
    parsed,
    result_of,
)
from gantrymq.contrib.faststream.publisher import AnswerPublisher
from gantrymq.contrib.faststream.pulling import Pulling
from gantrymq.message.model import MessageExt


@dataclass(kw_only=True)
class GantrySubscriberConfig(SubscriberUsecaseConfig):
    """What a subscriber is made with."""

    topic: str
    expression: str
    sql: str | None
    group: str
    options: PushConsumerKeywords = field(default_factory=lambda: PushConsumerKeywords())

    @property
    def ack_policy(self) -> AckPolicy:
        """What fails comes again, unless the subscriber or the broker says otherwise."""
        for policy in (self._ack_policy, self._outer_config.ack_policy):
            if policy is not EMPTY:
                return policy
        return AckPolicy.NACK_ON_ERROR


@dataclass(kw_only=True)
class GantrySubscriberSpecificationConfig(SubscriberSpecificationConfig):
    """What its description is made with."""

    topic: str


class GantrySubscriberSpecification(SubscriberSpecification[Any, GantrySubscriberSpecificationConfig]):
    """A subscriber in AsyncAPI."""

    @property
    def topic(self) -> str:
        """What is consumed, with the router's prefix."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def channel_labels(self) -> list[str]:
        """What the description names it by."""
        return [self.topic]

    def get_schema(self) -> dict[str, SubscriberSpec]:
        """The subscriber with its payload, by name."""
        message = SpecificationMessage(title=f"{self.name}:Message", payload=resolve_payloads(self.get_payloads()))
        return {
            self.name: SubscriberSpec(
                address=self.topic,
                description=self.description,
                operation=Operation(message=message, bindings=None),
                bindings=None,
            )
        }


class GantrySubscriber(SubscriberUsecase[Any]):
    """Handlers of one topic in one group. Its consumer joins the group when the broker starts."""

    is_batch: ClassVar[bool] = False
    _parsing: ClassVar[tuple[Any, Any]] = (parse_message, decode)

    def __init__(
        self, config: GantrySubscriberConfig, specification: SubscriberSpecification[Any, Any], calls: Any
    ) -> None:
        config.parser, config.decoder = self._parsing
        super().__init__(config, specification, calls)
        self.group: str = config.group
        self._topic = config.topic
        self._expression = config.expression
        self._sql = config.sql
        self._options = config.options
        self._consumer: PushConsumer | None = None
        self._pulling: Pulling | None = None

    @property
    def topic(self) -> str:
        """What is consumed, with the router's prefix."""
        return f"{self._outer_config.prefix}{self._topic}"

    def selects(self, message: MessageExt) -> bool:
        """Whether the handlers get it; without a broker conditions of SQL count as met."""
        return message.topic == self.topic and is_wanted(parse_subscription(self.topic, self._expression, 0), message)

    def get_log_context(self, message: Any) -> dict[str, str]:
        """What each of its log lines says: topic, group, message id."""
        return {"topic": self.topic, "group": self.group, "message_id": getattr(message, "message_id", "")}

    async def start(self) -> None:
        """Join the group."""
        await super().start()
        self._post_start()
        config: Any = self._outer_config
        if self.calls:
            consumer: PushConsumer = config.broker_config.consumer(self.group, self._listen, self._options)
            consumer.subscribe(self.topic, self._expression, sql=self._sql)
            await consumer.start()
            self._consumer = consumer
        else:
            pulled = config.broker_config.pull_consumer(self.group, self._options)
            pulling = Pulling(pulled, is_batch=self.is_batch)
            await pulling.start(self.topic, self._expression, self._sql)
            self._pulling = pulling

    async def stop(self) -> None:
        """Leave the group, when the calls in progress have ended or `graceful_timeout` is over."""
        await super().stop()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.close()
        pulling, self._pulling = self._pulling, None
        if pulling is not None:
            await pulling.close()

    async def _listen(self, messages: list[MessageExt]) -> Result:
        box: list[Acknowledged[Any]] = []
        token = parsed.set(box)
        try:
            await self.consume(self.raw_of(messages))
        finally:
            parsed.reset(token)
        return result_of(box)

    def _make_response_publisher(self, message: Any) -> Sequence[Any]:
        return (AnswerPublisher(producer=self._outer_config.producer, request=message.raw_message),)

    def raw_of(self, messages: list[MessageExt]) -> Any:
        """What FastStream gets of the messages of one listener call."""
        (message,) = messages
        return message

    async def get_one(self, *, timeout: float = 5.0) -> Any:
        """The next message (with `batch` the next messages of some queue), None when none comes within `timeout`
        seconds. Only for a subscriber without handlers, once it is started: IncorrectState otherwise.

        Asking again says that the message before is finished, unless it was `nack`ed: then it comes again.
        """
        if self.calls:
            raise IncorrectState("a subscriber with handlers gives its messages to them: get_one takes one without")
        if self._pulling is None:
            raise IncorrectState("the subscriber is not started: start the broker, or the subscriber, first")
        raw = await self._pulling.next(timeout)
        if raw is None:
            return None
        context = self._outer_config.context
        parser, decoder = self._get_parser_and_decoder()
        middlewares = (each(raw, context=context) for each in self._broker_middlewares)
        message: Any = await process_msg(msg=raw, middlewares=middlewares, parser=parser, decoder=decoder)
        if isinstance(message, Acknowledged):
            self._pulling.gave(message)
        return message

    async def __aiter__(self) -> AsyncIterator[Any]:
        """Message by message, for ever; as get_one."""
        while True:
            message = await self.get_one()
            if message is not None:
                yield message


class GantryBatchSubscriber(GantrySubscriber):
    """Handlers that get several messages at once, all of one queue."""

    is_batch = True
    _parsing = (parse_batch, decode_batch)

    def raw_of(self, messages: list[MessageExt]) -> Any:
        """All of them."""
        return messages

    def _make_response_publisher(self, message: Any) -> Sequence[Any]:
        return ()  # a request wants the answer of one message
