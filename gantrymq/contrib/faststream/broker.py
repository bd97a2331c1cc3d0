"""GantryBroker and GantryRouter."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Unpack, cast

from fast_depends import dependency_provider
from faststream._internal.broker import BrokerUsecase
from faststream._internal.broker.registrator import Registrator
from faststream._internal.broker.router import BrokerRouter
from faststream._internal.configs import BrokerConfig
from faststream._internal.constants import EMPTY
from faststream._internal.context.repository import ContextRepo
from faststream._internal.di import FastDependsConfig
from faststream._internal.endpoint.subscriber.call_item import CallsCollection
from faststream._internal.logger import DefaultLoggerStorage, make_logger_state
from faststream._internal.logger.logging import get_broker_logger
from faststream.exceptions import SetupError
from faststream.middlewares import AckPolicy
from faststream.response.publish_type import PublishType
from faststream.specification.schema import BrokerSpec

from gantrymq.app.handlers import HandlerKeywords
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.consume.options import PullConsumerKeywords, PushConsumerKeywords
from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.client.produce.options import DEFAULT_GROUP, ProducerKeywords, ProducerOptions
from gantrymq.client.produce.producer import Producer
from gantrymq.client.results import SendResult
from gantrymq.contrib.faststream.publisher import (
    GantryBatchPublisher,
    GantryCommand,
    GantryProducer,
    GantryPublisher,
    GantryPublisherConfig,
    GantryPublisherSpecification,
    GantryPublisherSpecificationConfig,
)
from gantrymq.contrib.faststream.subscriber import (
    GantryBatchSubscriber,
    GantrySubscriber,
    GantrySubscriberConfig,
    GantrySubscriberSpecification,
    GantrySubscriberSpecificationConfig,
)
from gantrymq.errors import GantryError
from gantrymq.message.model import MessageExt

SHARED = ("instance_name", "namespace", "credentials", "tls", "serialize_type", "trace", "trace_topic", "trace_sample",
          "interceptors")  # fmt: skip
PING_S = 5.0
BATCH_RECORDS = 32  # what one pull brings


class _LoggerStorage(DefaultLoggerStorage):
    """The logger "gantrymq" of FastStream."""

    def __init__(self) -> None:
        super().__init__()
        self.logger_log_level = logging.INFO

    def set_level(self, level: int) -> None:
        self.logger_log_level = level

    def register_subscriber(self, params: dict[str, Any]) -> None:
        """Nothing has to be measured: the topic is not padded."""

    def get_logger(self, *, context: ContextRepo) -> Any:
        if not (found := self._get_logger_ref()):
            found = get_broker_logger(
                name="gantrymq",
                default_context={"topic": "", "group": ""},
                message_id_ln=32,
                fmt="%(asctime)s %(levelname)-8s - %(group)s | %(topic)s | %(message_id)s - %(message)s",
                context=context,
                log_level=self.logger_log_level,
            )
            self._logger_ref.add(found)
        return found


@dataclass(kw_only=True)
class GantryBrokerConfig(BrokerConfig):
    """What subscribers and publishers share."""

    name_servers: str | Sequence[str] = ""
    shared: Mapping[str, Any] = field(default_factory=dict)

    def consumer(self, group: str, listener: Any, options: PushConsumerKeywords) -> PushConsumer:
        """A subscriber's consumer, connected as the broker is."""
        keywords = cast(PushConsumerKeywords, {**self.shared, **options})
        return PushConsumer(self.name_servers, group=group, listener=listener, **keywords)

    def pull_consumer(self, group: str, options: PushConsumerKeywords) -> PullConsumer:
        """The consumer of a subscriber without handlers. SetupError when it has options that only handlers have."""
        known = PullConsumerKeywords.__optional_keys__
        alien = sorted({*options}.difference(known))
        if alien:
            raise SetupError(f"group {group}: {', '.join(alien)} is for a subscriber with handlers")
        given = {name: value for name, value in self.shared.items() if name in known}
        keywords = cast(PullConsumerKeywords, {**given, **options})
        return PullConsumer(self.name_servers, group=group, **keywords)


class GantryRegistrator(Registrator[MessageExt, GantryBrokerConfig]):
    """Where subscribers and publishers are declared: a broker or a router."""

    def subscriber(  # type: ignore[override]
        self,
        topic: str,
        expression: str = "*",
        *,
        group: str,
        sql: str | None = None,
        batch: bool = False,
        max_records: int | None = None,
        ack_policy: AckPolicy = EMPTY,
        no_reply: bool = False,
        dependencies: Sequence[Any] = (),
        parser: Any = None,
        decoder: Any = None,
        codec: Any = None,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        include_in_schema: bool = True,
        **options: Unpack[HandlerKeywords],
    ) -> GantrySubscriber:
        """Consume a topic for a group: "*", "TagA || TagB", or with `sql` a condition.

        Each subscriber has a group of its own. A failed message comes again, and is a dead letter at last
        (AckPolicy.NACK_ON_ERROR); REJECT_ON_ERROR makes it one at once. batch: handlers get a list of up to
        `max_records` (32) payloads of one queue, whose messages succeed or fail together. Without handlers `get_one`
        and iterating the subscriber give its messages. options: of the push consumer, such as
        concurrency, ordered, max_reconsume_times.
        """
        calls: CallsCollection[Any] = CallsCollection()
        config = cast(Any, self.config)
        described = _described(topic, title, description, include_in_schema)
        subscriber = (GantryBatchSubscriber if batch else GantrySubscriber)(
            GantrySubscriberConfig(
                topic=topic,
                expression=expression,
                sql=sql,
                group=group,
                options=_consumer_options(options, batch, max_records),
                no_reply=no_reply,
                _outer_config=config,
                _ack_policy=ack_policy,
            ),
            GantrySubscriberSpecification(config, described, calls),
            calls,
        )
        super().subscriber(subscriber, persistent=persistent)
        return subscriber.add_call(
            parser_=parser or self._parser, decoder_=decoder or self._decoder, codec_=codec, dependencies_=dependencies
        )

    def publisher(  # type: ignore[override]
        self,
        topic: str,
        *,
        tags: str | None = None,
        headers: Mapping[str, Any] | None = None,
        batch: bool = False,
        persistent: bool = True,
        title: str | None = None,
        description: str | None = None,
        schema: Any = None,
        include_in_schema: bool = True,
    ) -> GantryPublisher:
        """Publish to a topic what a handler returns, or what `publish` is given. batch: a list of payloads as one
        request."""
        config = cast(Any, self.config)
        kind = GantryBatchPublisher if batch else GantryPublisher
        publisher = kind(
            GantryPublisherConfig(topic=topic, tags=tags, headers=headers or {}, _outer_config=config),
            GantryPublisherSpecification(
                config,
                GantryPublisherSpecificationConfig(
                    topic=topic,
                    schema_=schema,
                    title_=title,
                    description_=description,
                    include_in_schema=include_in_schema,
                ),
            ),
        )
        super().publisher(publisher, persistent=persistent)
        return publisher


class GantryBroker(GantryRegistrator, BrokerUsecase[MessageExt, Producer, GantryBrokerConfig]):
    """FastStream's broker for GantryMQ and Apache RocketMQ 4.9. Takes a producer's options, with which its consumers
    connect too, and FastStream's own."""

    _connection: Producer | None

    def __init__(
        self,
        name_servers: str | Sequence[str] = "127.0.0.1:9876",
        *,
        group: str = DEFAULT_GROUP,
        graceful_timeout: float | None = 15.0,
        ack_policy: AckPolicy = EMPTY,
        decoder: Any = None,
        parser: Any = None,
        codec: Any = None,
        dependencies: Sequence[Any] = (),
        middlewares: Sequence[Any] = (),
        routers: Iterable[GantryRegistrator] = (),
        description: str | None = None,
        tags: Iterable[Any] = (),
        logger: Any = EMPTY,
        log_level: int = logging.INFO,
        apply_types: bool = True,
        serializer: Any = EMPTY,
        provider: Any = None,
        context: ContextRepo | None = None,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        ProducerOptions(name_servers=name_servers, group=group, **keywords)  # mistakes show here
        given: dict[str, Any] = {**keywords}
        addresses = name_servers if isinstance(name_servers, str) else ";".join(name_servers)
        super().__init__(
            routers=routers,
            config=GantryBrokerConfig(
                name_servers=name_servers,
                shared={name: given[name] for name in SHARED if name in given},
                producer=GantryProducer(),
                broker_middlewares=middlewares,
                broker_parser=parser,
                broker_decoder=decoder,
                broker_codec=codec,
                logger=make_logger_state(logger=logger, log_level=log_level, default_storage_cls=_LoggerStorage),
                fd_config=_depends(apply_types, serializer, provider, context),
                broker_dependencies=dependencies,
                graceful_timeout=graceful_timeout,
                ack_policy=ack_policy,
                extra_context={"broker": self},
            ),
            specification=_specification(addresses, description, tags),
        )
        self._name_servers = name_servers
        self._make_producer = functools.partial(Producer, name_servers, group=group, **keywords)

    async def _connect(self) -> Producer:
        producer = self._make_producer()
        await producer.start()
        config = self.config.broker_config
        cast(GantryProducer, config.producer).connect(producer, config.fd_config._serializer, config.broker_codec)
        return producer

    async def start(self) -> None:
        """Connect, then have each subscriber join its group. SetupError when two have the same."""
        groups = [cast(GantrySubscriber, each).group for each in self.subscribers]
        twice = {group for group in groups if groups.count(group) > 1}
        if twice:
            raise SetupError(f"two subscribers of group {min(twice)}: each needs its own group")
        await (await self.connect()).start()  # ClientClosed when it is connected in another event loop
        await super().start()

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        """Leave the groups when the calls in progress have ended, then close the producer."""
        await super().stop(exc_type, exc_val, exc_tb)
        producer: Producer | None = self._connection
        self._connection = None
        if producer is not None:
            await producer.close()
        cast(GantryProducer, self.config.broker_config.producer).disconnect()

    async def ping(self, timeout: float | None) -> bool:
        """Whether a name server answers and knows a broker."""
        shared = self.config.broker_config.shared
        connecting = {name: shared[name] for name in ("credentials", "tls", "serialize_type") if name in shared}
        try:
            async with AdminClient(self._name_servers, timeout_s=timeout or PING_S, **connecting) as admin:
                return bool(await admin.cluster.masters())
        except GantryError:
            return False

    async def publish(
        self,
        message: Any = None,
        topic: str = "",
        *,
        headers: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        sharding_key: str | None = None,
        delay_seconds: float | None = None,
        deliver_at: float | datetime | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send a payload, and wait until it is stored. Headers become properties, of the types that Message knows."""
        command = GantryCommand(
            message,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.broker_config.id_generator(),
            tags=tags,
            keys=keys,
            sharding_key=sharding_key,
            delay_seconds=delay_seconds,
            deliver_at=deliver_at,
            timeout=timeout,
        )
        result: SendResult = await self._basic_publish(command, producer=self.config.producer)
        return result

    async def publish_batch(  # type: ignore[override]
        self,
        *messages: Any,
        topic: str = "",
        headers: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        tags: str | None = None,
        keys: str | Sequence[str] = (),
        sharding_key: str | None = None,
        timeout: float | None = None,
    ) -> SendResult:
        """Send payloads as one request into one queue: all are stored, or none. 4 MiB at most; headers, tags and keys
        are those of each."""
        command = GantryCommand(
            *messages,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.broker_config.id_generator(),
            tags=tags,
            keys=keys,
            sharding_key=sharding_key,
            timeout=timeout,
        )
        result: SendResult = await self._basic_publish_batch(command, producer=self.config.producer)
        return result

    async def request(  # type: ignore[override]
        self,
        message: Any = None,
        topic: str = "",
        *,
        timeout: float = 30.0,
        headers: Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        tags: str | None = None,
    ) -> Any:
        """Send a payload, and wait for what its handler returns."""
        command = GantryCommand(
            message,
            topic=topic,
            headers=headers,
            correlation_id=correlation_id or self.config.broker_config.id_generator(),
            tags=tags,
            timeout=timeout,
            publish_type=PublishType.REQUEST,
        )
        return await self._basic_request(command, producer=self.config.producer)


def _described(
    topic: str, title: str | None, description: str | None, is_in_schema: bool
) -> GantrySubscriberSpecificationConfig:
    return GantrySubscriberSpecificationConfig(
        topic=topic, title_=title, description_=description, include_in_schema=is_in_schema
    )


def _consumer_options(options: HandlerKeywords, batch: bool, max_records: int | None) -> PushConsumerKeywords:
    if batch:
        given = {**options, "batch_size": BATCH_RECORDS if max_records is None else max_records}
        return cast(PushConsumerKeywords, given)
    if max_records is not None:
        raise SetupError(f"max_records={max_records} is for a subscriber with batch=True")
    return cast(PushConsumerKeywords, options)


def _depends(apply_types: bool, serializer: Any, provider: Any, context: ContextRepo | None) -> FastDependsConfig:
    return FastDependsConfig(
        use_fastdepends=apply_types,
        serializer=serializer,
        provider=provider or dependency_provider,
        context=context or ContextRepo(),
    )


def _specification(addresses: str, description: str | None, tags: Iterable[Any]) -> BrokerSpec:
    return BrokerSpec(
        description=description,
        url=addresses.split(";"),
        protocol="rocketmq",
        protocol_version="4.9",
        tags=tags,
        security=None,
    )


class GantryRouter(GantryRegistrator, BrokerRouter[MessageExt, GantryBrokerConfig]):
    """Subscribers and publishers that a broker includes, with a prefix before their topics."""

    def __init__(
        self,
        prefix: str = "",
        *,
        dependencies: Sequence[Any] = (),
        middlewares: Sequence[Any] = (),
        routers: Iterable[GantryRegistrator] = (),
        parser: Any = None,
        decoder: Any = None,
        include_in_schema: bool | None = None,
        ack_policy: AckPolicy = EMPTY,
    ) -> None:
        super().__init__(
            handlers=(),
            config=GantryBrokerConfig(
                prefix=prefix,
                ack_policy=ack_policy,
                broker_dependencies=dependencies,
                broker_middlewares=middlewares,
                broker_parser=parser,
                broker_decoder=decoder,
                include_in_schema=include_in_schema,
            ),
            routers=routers,
        )
