"""The facade for threads: one loop thread, shared, started and stopped with its users."""

from __future__ import annotations

import threading

import pytest

from gantrymq import Message, SyncProducer, SyncPushConsumer
from gantrymq.errors import ClientClosed, ConfigError, ConnectError, MessageRejected
from tests.gantrymq.client.ports import closed_port


def loop_threads() -> int:
    return sum(thread.name == "gantrymq-blocking" for thread in threading.enumerate())


def test_the_loop_thread_is_shared_and_ends_with_its_last_user() -> None:
    address = closed_port()
    with SyncProducer(address):
        assert loop_threads() == 1
        with SyncProducer(address):
            assert loop_threads() == 1
        assert loop_threads() == 1
    assert loop_threads() == 0


def test_failures_are_raised_in_the_calling_thread() -> None:
    with SyncProducer(closed_port()) as producer:
        with pytest.raises(ConnectError):
            producer.send(Message("T", b"x"))
        with pytest.raises(MessageRejected):
            producer.send(Message("T", b""))


def test_a_client_that_was_not_started_or_was_closed_says_so() -> None:
    producer = SyncProducer(closed_port())
    with pytest.raises(ClientClosed):
        producer.send(Message("T", b"x"))
    producer.start()
    producer.start()
    producer.close()
    producer.close()
    with pytest.raises(ClientClosed):
        producer.send(Message("T", b"x"))
    with pytest.raises(ClientClosed):
        producer.start()
    assert loop_threads() == 0


def test_a_start_that_fails_leaves_no_thread_behind() -> None:
    consumer = SyncPushConsumer(closed_port(), group="g", listener=print)
    with pytest.raises(ConfigError):
        consumer.start()
    assert loop_threads() == 0


def test_a_consumer_without_brokers_starts_and_closes() -> None:
    consumer = SyncPushConsumer(closed_port(), group="g", listener=print)
    consumer.subscribe("T")
    with consumer:
        consumer.subscribe("U")
        consumer.unsubscribe("T")
        assert consumer.assigned_queues == []
    assert loop_threads() == 0
