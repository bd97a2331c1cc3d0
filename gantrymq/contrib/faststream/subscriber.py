"""Handlers of one topic, called by a push consumer of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from faststream._internal.configs import SubscriberSpecificationConfig, SubscriberUsecaseConfig
from faststream._internal.constants import EMPTY
from faststream._internal.endpoint.subscriber import SubscriberSpecification, SubscriberUsecase
from faststream.exceptions import FeatureNotSupportedException
from faststream.middlewares import AckPolicy
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as SpecificationMessage
from faststream.specification.schema import Operation, SubscriberSpec

from gantrymq.client.consume.options import PushConsumerKeywords
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.consume.subscription import is_wanted, parse_subscription
from gantrymq.contrib.faststream.message import Result, decode, parse_message, parsed, result_of
from gantrymq.contrib.faststream.publisher import AnswerPublisher
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


class GantrySubscriber(SubscriberUsecase[MessageExt]):
    """Handlers of one topic in one group. Its consumer joins the group when the broker starts."""

    def __init__(
        self, config: GantrySubscriberConfig, specification: SubscriberSpecification[Any, Any], calls: Any
    ) -> None:
        config.parser, config.decoder = parse_message, decode
        super().__init__(config, specification, calls)
        self.group: str = config.group
        self._topic = config.topic
        self._expression = config.expression
        self._sql = config.sql
        self._options = config.options
        self._consumer: PushConsumer | None = None

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
        if self.calls:
            config: Any = self._outer_config
            consumer: PushConsumer = config.broker_config.consumer(self.group, self._listen, self._options)
            consumer.subscribe(self.topic, self._expression, sql=self._sql)
            await consumer.start()
            self._consumer = consumer

    async def stop(self) -> None:
        """Leave the group, when the calls in progress have ended or `graceful_timeout` is over."""
        await super().stop()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.close()

    async def _listen(self, messages: list[MessageExt]) -> Result:
        (message,) = messages
        box = []  # type: ignore[var-annotated]
        token = parsed.set(box)
        try:
            await self.consume(message)
        finally:
            parsed.reset(token)
        return result_of(box)

    def _make_response_publisher(self, message: Any) -> Sequence[Any]:
        return (AnswerPublisher(producer=self._outer_config.producer, request=message.raw_message),)

    async def get_one(self, *, timeout: float = 5.0) -> Any:
        raise FeatureNotSupportedException("to ask for single messages take gantrymq.PullConsumer")

    def __aiter__(self) -> AsyncIterator[Any]:
        raise FeatureNotSupportedException("to ask for single messages take gantrymq.PullConsumer")
