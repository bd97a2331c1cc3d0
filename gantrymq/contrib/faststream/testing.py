"""TestGantryBroker: a GantryBroker in one process, without connections, as FastStream tests its applications."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast
from unittest.mock import MagicMock

from faststream._internal.testing.broker import EnterType, TestBroker, change_producer
from faststream.exceptions import SubscriberNotFound

from gantrymq.app.memory import stored_message
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.contrib.faststream.broker import GantryBroker
from gantrymq.contrib.faststream.publisher import GantryBatchPublisher, GantryCommand, GantryProducer, GantryPublisher
from gantrymq.contrib.faststream.subscriber import GantrySubscriber
from gantrymq.message.model import MessageExt


class TestGantryBroker(TestBroker[GantryBroker, EnterType], broker=GantryBroker):  # type: ignore[call-arg]
    """Publishes straight to the handlers whose topic and tags fit; conditions of SQL count as met."""

    def create_publisher_fake_subscriber(
        self, broker: GantryBroker, publisher: GantryPublisher
    ) -> tuple[GantrySubscriber, bool]:
        """FastStream asks: the subscriber that gets what is published, and whether it is the application's own."""
        for each in self.brokers:
            for found in each.subscribers:
                subscriber = cast(GantrySubscriber, found)
                if subscriber.topic == publisher.topic:
                    return subscriber, True
        is_batch = isinstance(publisher, GantryBatchPublisher)
        fake = broker.subscriber(publisher.topic, group=f"test-{publisher.topic}", batch=is_batch, persistent=False)
        return fake, False

    @contextmanager
    def _patch_producer(self, broker: GantryBroker) -> Generator[None, None, None]:
        with change_producer(broker.config.broker_config, _ProducerInMemory(broker, self.brokers)):
            yield

    async def _fake_connect(  # type: ignore[override]
        self, broker: GantryBroker, *arguments: Any, **keywords: Any
    ) -> MagicMock:
        return MagicMock()


class _ProducerInMemory(GantryProducer):
    def __init__(self, broker: GantryBroker, brokers: Sequence[GantryBroker]) -> None:
        super().__init__()
        self._brokers = brokers
        config = broker.config.broker_config
        self._serializer = config.fd_config._serializer
        self.codec = config.broker_codec or self.codec

    def _receivers(self, message: MessageExt) -> list[GantrySubscriber]:
        found = [cast(GantrySubscriber, each) for broker in self._brokers for each in broker.subscribers]
        return [subscriber for subscriber in found if subscriber.selects(message)]

    async def publish(self, cmd: GantryCommand) -> SendResult:
        message = stored_message(await self.message_of(cmd))
        for subscriber in self._receivers(message):
            await subscriber.process_message(subscriber.raw_of([message]))
        return SendResult(SendStatus.SEND_OK, message.msg_id, message.offset_msg_id, message.queue, 0)

    async def publish_batch(self, cmd: GantryCommand) -> SendResult:
        messages = [stored_message(each) for each in await self.messages_of(cmd)]
        for subscriber in dict.fromkeys(each for message in messages for each in self._receivers(message)):
            wanted = [message for message in messages if subscriber.selects(message)]
            for raw in [subscriber.raw_of(wanted)] if subscriber.is_batch else wanted:
                await subscriber.process_message(raw)
        first = messages[0]
        return SendResult(SendStatus.SEND_OK, first.msg_id, first.offset_msg_id, first.queue, 0)

    async def request(self, cmd: GantryCommand) -> MessageExt:
        message = stored_message(await self.message_of(cmd))
        for subscriber in self._receivers(message):
            answer = await subscriber.process_message(subscriber.raw_of([message]))
            reply = GantryCommand(answer.body, topic=cmd.destination, correlation_id=cmd.correlation_id)
            return stored_message(await self.message_of(reply))
        raise SubscriberNotFound(f"{cmd.destination}: no subscriber")
