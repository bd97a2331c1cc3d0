"""What is published, and the producer it goes through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from faststream._internal.configs import PublisherSpecificationConfig, PublisherUsecaseConfig
from faststream._internal.endpoint.publisher import PublisherSpecification, PublisherUsecase
from faststream._internal.endpoint.publisher.fake import FakePublisher
from faststream._internal.parser import BatchCodecProto, CodecProto, DefaultCodec
from faststream._internal.producer import ProducerProto
from faststream.exceptions import FeatureNotSupportedException, IncorrectState
from faststream.response.publish_type import PublishType
from faststream.response.response import BatchPublishCommand, PublishCommand
from faststream.specification.asyncapi.utils import resolve_payloads
from faststream.specification.schema import Message as SpecificationMessage
from faststream.specification.schema import Operation, PublisherSpec

from gantrymq.client.produce.producer import Producer
from gantrymq.client.produce.sender import queue_by_hash
from gantrymq.client.results import SendResult
from gantrymq.contrib.faststream.message import CONTENT_TYPE, CORRELATION_ID, decode, parse_message
from gantrymq.errors import MessageRejected
from gantrymq.message.headers import header_texts
from gantrymq.message.model import Message, MessageExt


class GantryCommand(BatchPublishCommand):
    """A payload, or several as one batch, on the way to a topic. request: what it answers."""

    def __init__(
        self,
        body: Any = None,
        *bodies: Any,
        topic: str = "",
        headers: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        sharding_key: str | None = None,
        delay_seconds: float | None = None,
        deliver_at: float | datetime | None = None,
        timeout: float | None = None,
        publish_type: PublishType = PublishType.PUBLISH,
    ) -> None:
        super().__init__(
            body,
            *bodies,
            _publish_type=publish_type,
            destination=topic,
            correlation_id=correlation_id,
            headers=dict(headers or {}),
        )
        self.tags = tags
        self.keys = keys
        self.sharding_key = sharding_key
        self.delay_seconds = delay_seconds
        self.deliver_at = deliver_at
        self.timeout = timeout
        self.request: MessageExt | None = None

    @classmethod
    def from_cmd(cls, cmd: PublishCommand, *, batch: bool = False) -> GantryCommand:
        """As a GantryCommand: what a handler returned comes as FastStream's own. batch: a list has a payload each."""
        if isinstance(cmd, GantryCommand):
            return cmd
        body, bodies = cls._parse_bodies(cmd.body, batch=batch)
        return cls(
            body,
            *bodies,
            topic=cmd.destination,
            headers=cmd.headers,
            correlation_id=cmd.correlation_id,
            publish_type=cmd.publish_type,
        )


class GantryProducer(ProducerProto[GantryCommand]):
    """Sends commands through the SDK's producer, while the broker is connected."""

    def __init__(self) -> None:
        self._parser = parse_message
        self._decoder = decode
        self._producer: Producer | None = None
        self._serializer: Any = None
        self.codec: CodecProto = DefaultCodec()

    def connect(self, producer: Producer, serializer: Any, codec: Any) -> None:
        """Send through this producer from now on."""
        self._producer, self._serializer, self.codec = producer, serializer, codec or DefaultCodec()

    def disconnect(self) -> None:
        """Send no more: IncorrectState until `connect`."""
        self._producer = None

    async def publish(self, cmd: GantryCommand) -> SendResult:
        """Send it, and wait until it is stored; or answer the request it is for."""
        message = await self.message_of(cmd)
        if cmd.request is not None:
            return await self._connected.reply(cmd.request, message.body, headers=message.properties)
        return await self._connected.send(message, sharding_key=cmd.sharding_key, timeout_s=cmd.timeout)

    async def request(self, cmd: GantryCommand) -> MessageExt:
        """Send it, and wait for its answer."""
        return await self._connected.request(await self.message_of(cmd), timeout_s=cmd.timeout)

    async def publish_batch(self, cmd: GantryCommand) -> SendResult:
        """Send the payloads as one request into one queue: all are stored, or none."""
        messages = await self.messages_of(cmd)
        queue = None
        if cmd.sharding_key is not None:
            queue = queue_by_hash(cmd.sharding_key)(await self._connected.queues(cmd.destination), messages[0])
        return await self._connected.send_batch(messages, queue=queue, timeout_s=cmd.timeout)

    async def messages_of(self, cmd: GantryCommand) -> list[Message]:
        """The messages of a batch. MessageRejected when there is none."""
        bodies = cmd.batch_bodies
        if isinstance(self.codec, BatchCodecProto):
            encoded = await self.codec.encode_batch(bodies, self._serializer)
        else:
            encoded = [await self.codec.encode(body, self._serializer) for body in bodies]
        if not encoded:
            raise MessageRejected("a batch needs at least one message")
        return [_message(cmd, body, content_type) for body, content_type in encoded]

    async def message_of(self, cmd: GantryCommand) -> Message:
        """The message of a command."""
        return _message(cmd, *await self.codec.encode(cmd.body, self._serializer))

    @property
    def _connected(self) -> Producer:
        if self._producer is None:
            raise IncorrectState("the broker is not connected: call connect, or start, first")
        return self._producer


def _message(cmd: GantryCommand, body: bytes, content_type: str | None) -> Message:
    headers = {name: str(value) if value is None else value for name, value in cmd.headers.items()}
    if content_type:
        headers.setdefault(CONTENT_TYPE, content_type)
    if cmd.correlation_id:
        headers.setdefault(CORRELATION_ID, cmd.correlation_id)
    return Message(
        cmd.destination,
        body,
        tags=cmd.tags,
        keys=cmd.keys,
        properties=header_texts(headers),
        delay_seconds=cmd.delay_seconds,
        deliver_at=cmd.deliver_at,
    )


class AnswerPublisher(FakePublisher):
    """Sends what a handler returned as the answer to the request it got."""

    def __init__(self, *, producer: ProducerProto[Any], request: MessageExt) -> None:
        super().__init__(producer=producer)
        self._request = request

    def patch_command(self, cmd: PublishCommand) -> GantryCommand:
        """FastStream asks: what a handler returned, as the answer to its request."""
        answer = GantryCommand.from_cmd(super().patch_command(cmd))
        answer.request, answer.destination = self._request, self._request.topic
        return answer


@dataclass(kw_only=True)
class GantryPublisherConfig(PublisherUsecaseConfig):
    """What a publisher is made with."""

    topic: str
    tags: str | None
    headers: Mapping[str, Any]


@dataclass(kw_only=True)
class GantryPublisherSpecificationConfig(PublisherSpecificationConfig):
    """What its description is made with."""

    topic: str


class GantryPublisherSpecification(PublisherSpecification[Any, GantryPublisherSpecificationConfig]):
    """A publisher in AsyncAPI."""

    @property
    def topic(self) -> str:
        """Where it is published, with the router's prefix."""
        return f"{self._outer_config.prefix}{self.config.topic}"

    @property
    def name(self) -> str:
        """What the description calls it."""
        return self.config.title_ or f"{self.topic}:Publisher"

    def get_schema(self) -> dict[str, PublisherSpec]:
        """The publisher with its payload, by name."""
        payload = resolve_payloads(self.get_payloads(), "Publisher")
        operation = Operation(
            message=SpecificationMessage(title=f"{self.name}:Message", payload=payload), bindings=None
        )
        return {
            self.name: PublisherSpec(
                address=self.topic, description=self.config.description_, operation=operation, bindings=None
            )
        }


class GantryPublisher(PublisherUsecase):
    """Publishes to one topic: as a decorator what a handler returns, or by `publish`."""

    def __init__(self, config: GantryPublisherConfig, specification: PublisherSpecification[Any, Any]) -> None:
        super().__init__(config, specification)
        self._topic = config.topic
        self._tags = config.tags
        self._headers = config.headers

    @property
    def topic(self) -> str:
        """Where it publishes, with the router's prefix."""
        return f"{self._outer_config.prefix}{self._topic}"

    async def publish(self, message: Any, **keywords: Any) -> SendResult:
        """As GantryBroker.publish, to this topic."""
        command = GantryCommand(message, **{"topic": self.topic, "tags": self._tags, **keywords})
        command.add_headers(dict(self._headers), override=False)
        command.correlation_id = command.correlation_id or self._outer_config.id_generator()
        result: SendResult = await self._basic_publish(
            command, producer=self._outer_config.producer, _extra_middlewares=()
        )
        return result

    async def request(self, message: Any, *, timeout: float | None = 30.0, **keywords: Any) -> Any:
        """As GantryBroker.request, of this topic."""
        command = GantryCommand(
            message, **{"topic": self.topic, "tags": self._tags, **keywords}, timeout=timeout,
            publish_type=PublishType.REQUEST,
        )  # fmt: skip
        command.add_headers(dict(self._headers), override=False)
        command.correlation_id = command.correlation_id or self._outer_config.id_generator()
        return await self._basic_request(command, producer=self._outer_config.producer)

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        """What a handler returned; None is nothing to publish, because a message needs a body."""
        if cmd.body is None:
            return
        command = GantryCommand.from_cmd(cmd)
        command.destination = command.destination or self.topic
        command.tags = command.tags or self._tags
        command.add_headers(dict(self._headers), override=False)
        await self._basic_publish(command, producer=self._outer_config.producer, _extra_middlewares=_extra_middlewares)


class GantryBatchPublisher(GantryPublisher):
    """Publishes several payloads as one request into one queue: as a decorator the list that a handler returns, or by
    `publish`."""

    async def publish(self, *messages: Any, **keywords: Any) -> SendResult:
        """As GantryBroker.publish_batch, to this topic."""
        command = GantryCommand(*messages, **{"topic": self.topic, "tags": self._tags, **keywords})
        command.add_headers(dict(self._headers), override=False)
        command.correlation_id = command.correlation_id or self._outer_config.id_generator()
        return await self._send_batch(command, ())

    async def request(self, message: Any, *, timeout: float | None = 30.0, **keywords: Any) -> Any:
        """Not for a batch: FeatureNotSupportedException."""
        raise FeatureNotSupportedException("a request is one message: declare a publisher without batch for it")

    async def _publish(self, cmd: PublishCommand, *, _extra_middlewares: Iterable[Any]) -> None:
        command = GantryCommand.from_cmd(cmd, batch=True)
        if not command.batch_bodies:
            return
        command.destination = command.destination or self.topic
        command.tags = command.tags or self._tags
        command.add_headers(dict(self._headers), override=False)
        await self._send_batch(command, _extra_middlewares)

    async def _send_batch(self, command: GantryCommand, middlewares: Iterable[Any]) -> SendResult:
        result: SendResult = await self._basic_publish_batch(
            command, producer=self._outer_config.producer, _extra_middlewares=middlewares
        )
        return result
