"""The facade for threads: one loop thread, shared, started and stopped with its users."""

from __future__ import annotations

import gc
import inspect
import socket
import threading
import weakref

import pytest

from gantrymq import (
    Message,
    PopConsumer,
    Producer,
    PullConsumer,
    PushConsumer,
    SyncAdminClient,
    SyncPopConsumer,
    SyncProducer,
    SyncPullConsumer,
    SyncPushConsumer,
    SyncTransactionProducer,
    TransactionProducer,
)
from gantrymq.client.blocking.shared_loop import shared_loop
from gantrymq.errors import ClientClosed, ConfigError, ConnectError, MessageRejected, RequestTimeout
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
    with SyncProducer(closed_port(), delivery_timeout_s=0.2) as producer:
        with pytest.raises((ConnectError, RequestTimeout)):
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


def test_a_start_by_many_threads_at_once_is_one_start() -> None:
    producer = SyncProducer(closed_port())
    together = threading.Barrier(8)

    def start() -> None:
        together.wait()
        producer.start()

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.close()
    assert loop_threads() == 0


def test_a_client_that_is_forgotten_while_open_is_warned_of() -> None:
    producer = SyncProducer(closed_port())
    producer.start()
    asynchronous = weakref.ref(producer)
    with pytest.warns(ResourceWarning, match="SyncProducer was not closed"):
        del producer
        gc.collect()
    assert asynchronous() is None
    shared_loop.close_all()
    assert loop_threads() == 0


def test_a_call_whose_loop_ends_does_not_wait_for_ever() -> None:
    ended = threading.Event()
    with SyncPullConsumer(closed_port(), group="g") as consumer:
        consumer.subscribe("T")

        def poll() -> None:
            with pytest.raises(ClientClosed):
                while True:
                    consumer.poll(3600)
            ended.set()

        threading.Thread(target=poll, daemon=True).start()
    assert ended.wait(60)


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


FOR_THE_TWIN = {
    "abandon",
    "begin_nothing_more",
    "collect",
    "first_try",
    "hand_over",
    "poll_one_by_one",
    "send_collected",
}  # what twins call of it


@pytest.mark.parametrize(
    ("twin", "original"),
    [
        (SyncProducer, Producer),
        (SyncPushConsumer, PushConsumer),
        (SyncPullConsumer, PullConsumer),
        (SyncPopConsumer, PopConsumer),
        (SyncTransactionProducer, TransactionProducer),
    ],
)
def test_a_twin_has_every_method_with_its_arguments_and_help(twin: type, original: type) -> None:
    for name, method in inspect.getmembers(original, inspect.isfunction):
        if name.startswith("_") or name in FOR_THE_TWIN:
            continue
        own = getattr(twin, name)
        assert list(inspect.signature(own).parameters) == list(inspect.signature(method).parameters), name
        assert "See " not in (inspect.getdoc(own) or "See "), name


@pytest.mark.parametrize("call", ["send", "topics", "queues"])
def test_a_call_to_what_is_silent_asks_whether_it_is_a_name_server(call: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, and nothing is ever sent
        address = "{}:{}".format(*silent.getsockname())
        with (
            SyncProducer(address, delivery_timeout_s=1) as producer,
            SyncAdminClient(address, timeout_s=1) as admin,
            SyncPullConsumer(address, group="g") as consumer,
            pytest.raises(RequestTimeout, match=f"name server {address} did not answer .* is it a name server"),
        ):
            if call == "send":
                producer.send(Message("T", b"x"))
            elif call == "topics":
                admin.topics.names()
            else:
                consumer.queues("T")
