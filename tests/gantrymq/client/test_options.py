"""The keyword arguments of producers and consumers: their names, types and defaults are an interface."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import gantrymq
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.consume.options import (
    FlowLimits,
    PullConsumerKeywords,
    PullConsumerOptions,
    PushConsumerKeywords,
    PushConsumerOptions,
)
from gantrymq.client.consume.rebalance import allocate_averagely
from gantrymq.client.pop.options import PopConsumerKeywords, PopConsumerOptions
from gantrymq.client.produce.options import ProducerKeywords, ProducerOptions
from gantrymq.errors import ConfigError, MessageRejected, WrongType
from gantrymq.remoting.command import JSON

REQUIRED = inspect.Parameter.empty
CLIENT = {"instance_name": None, "credentials": None, "tls": None, "serialize_type": JSON, "namespace": ""}
PRODUCER = {
    "delivery_timeout_s": 30.0, "retries": None, "retry_unless_send_ok": False, "linger_s": 0.0,
    "send_latency_fault_enable": False,
    "batch_bytes": 65536, "buffer_bytes": 33554432, "message_bytes_max": 4194304,
    "new_topic_queues": 4, "round_delays_up": False, "compress_from_bytes": 4096, "compress_level": 5,
    "compress_type": "zlib", "trace": False,
    "trace_topic": "RMQ_SYS_TRACE_TOPIC", "interceptors": (), "trace_sample": 1.0,
} | CLIENT  # fmt: skip
CONSUMER = {
    "group": REQUIRED, "model": gantrymq.MessageModel.CLUSTERING, "consume_from": gantrymq.ConsumeFrom.LAST_OFFSET,
    "consume_from_ms": None, "pull_batch": 32, "limits": None, "strategy": allocate_averagely, "offsets_folder": None,
    "on_assigned": None, "on_revoked": None, "on_message_lost": None,
    "trace": False, "trace_topic": "RMQ_SYS_TRACE_TOPIC", "trace_sample": 1.0,
} | CLIENT  # fmt: skip
PUSH = CONSUMER | {
    "listener": REQUIRED, "concurrency": 20, "batch_size": 1, "ordered": False, "suspend_s": 1.0,
    "max_reconsume_times": None, "overdue_s": 900.0, "close_wait_s": 10.0, "interceptors": (),
}  # fmt: skip
POP = {
    "group": REQUIRED, "consume_from": gantrymq.ConsumeFrom.LAST_OFFSET, "consume_from_ms": None, "batch_size": 1,
    "invisible_s": 60.0, "renew_for_s": 900.0, "held_max": 1000, "close_wait_s": 10.0, "interceptors": (),
    "ordered": False, "suspend_s": 1.0, "max_reconsume_times": None,
    "trace": False, "trace_topic": "RMQ_SYS_TRACE_TOPIC", "trace_sample": 1.0,
} | CLIENT  # fmt: skip
PULL = CONSUMER | {"batch_size": 10, "auto_commit": True}
IN_TRANSACTIONS = PRODUCER | {"listener": REQUIRED, "group": REQUIRED, "topics": (), "threads": 8}

LOADED_LATE = {"Path": Path}  # importing a client does not load it


def keywords_of(constructor: Callable[..., Any], options: type[ClientOptions]) -> dict[str, Any]:
    """The keyword arguments and their defaults: those that the signature writes out, those of its TypedDict."""
    parameters = inspect.signature(constructor).parameters
    written_out = {name: p.default for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    (typed_dict,) = get_type_hints(constructor.__init__)["keywords"].__args__  # type: ignore[misc]
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    return written_out | {name: defaults[name] for name in get_type_hints(typed_dict, localns=LOADED_LATE)}


@pytest.mark.parametrize(
    ("constructor", "options", "expected"),
    [
        (gantrymq.Producer, ProducerOptions, PRODUCER | {"group": "DEFAULT_PRODUCER"}),
        (gantrymq.SyncProducer, ProducerOptions, PRODUCER | {"group": "DEFAULT_PRODUCER"}),
        (gantrymq.TransactionProducer, ProducerOptions, IN_TRANSACTIONS),
        (gantrymq.SyncTransactionProducer, ProducerOptions, IN_TRANSACTIONS),
        (gantrymq.PushConsumer, PushConsumerOptions, PUSH),
        (gantrymq.SyncPushConsumer, PushConsumerOptions, PUSH),
        (gantrymq.PullConsumer, PullConsumerOptions, PULL),
        (gantrymq.SyncPullConsumer, PullConsumerOptions, PULL),
        (gantrymq.PopConsumer, PopConsumerOptions, POP),
        (gantrymq.SyncPopConsumer, PopConsumerOptions, POP),
    ],
)
def test_the_keyword_arguments_are_these_with_these_defaults(
    constructor: type, options: type[ClientOptions], expected: dict[str, Any]
) -> None:
    assert keywords_of(constructor, options) == expected


@pytest.mark.parametrize(
    ("keywords", "options"),
    [
        (ProducerKeywords, ProducerOptions),
        (PushConsumerKeywords, PushConsumerOptions),
        (PullConsumerKeywords, PullConsumerOptions),
        (PopConsumerKeywords, PopConsumerOptions),
    ],
)
def test_keywords_and_options_have_the_same_names_and_types(keywords: type, options: type[ClientOptions]) -> None:
    fields = get_type_hints(options, localns=LOADED_LATE)
    assert get_type_hints(keywords, localns=LOADED_LATE) == {
        name: kind for name, kind in fields.items() if name not in ("name_servers", "group")
    }


def test_a_keyword_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="concurency"):
        gantrymq.PushConsumer("h:1", group="g", listener=print, concurency=3)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("number", ["batch_size", "pull_batch", "concurrency"])
def test_a_consumer_needs_at_least_one_of_each(number: str) -> None:
    with pytest.raises(ConfigError, match=number):
        PushConsumerOptions(name_servers="h:1", group="g", **{number: 0})  # type: ignore[arg-type]


def test_a_group_must_be_named_as_brokers_allow_it() -> None:
    for make in (ProducerOptions, PushConsumerOptions, PullConsumerOptions, PopConsumerOptions):
        with pytest.raises(MessageRejected, match="illegal characters"):
            make(name_servers="h:1", group="not a group")


def test_to_begin_at_a_time_needs_the_time() -> None:
    for make in (PullConsumerOptions, PopConsumerOptions):
        with pytest.raises(ConfigError, match="consume_from_ms"):
            make(name_servers="h:1", group="g", consume_from=gantrymq.ConsumeFrom.TIMESTAMP)


def test_a_broadcasting_consumer_keeps_its_client_id_over_restarts() -> None:
    options = PullConsumerOptions(name_servers="h:1", group="g", model=gantrymq.MessageModel.BROADCASTING)
    assert options.instance_name == "DEFAULT"
    named = PullConsumerOptions(
        name_servers="h:1", group="g", model=gantrymq.MessageModel.BROADCASTING, instance_name="one"
    )
    assert named.instance_name == "one"


@pytest.mark.parametrize(("ordered", "times", "limit"), [(False, None, 16), (True, None, 2147483647), (True, 3, 3)])
def test_a_message_is_a_dead_letter_after_so_many_times(ordered: bool, times: int | None, limit: int) -> None:
    options = PushConsumerOptions(name_servers="h:1", group="g", ordered=ordered, max_reconsume_times=times)
    assert options.reconsume_limit == limit


@pytest.mark.parametrize(
    ("make", "keywords", "error"),
    [
        (gantrymq.Producer, {"retries": -1}, ConfigError),
        (gantrymq.Producer, {"retries": "2"}, WrongType),
        (gantrymq.Producer, {"retries": True}, WrongType),
        (gantrymq.Producer, {"delivery_timeout_s": 0}, ConfigError),
        (gantrymq.Producer, {"delivery_timeout_s": "3"}, WrongType),
        (gantrymq.Producer, {"compress_from_bytes": -1}, ConfigError),
        (gantrymq.Producer, {"compress_level": 10}, ConfigError),
        (gantrymq.Producer, {"compress_type": "LZ4"}, ConfigError),
        (gantrymq.Producer, {"trace": 1}, WrongType),
        (gantrymq.Producer, {"group": 5}, WrongType),
        (gantrymq.Producer, {"credentials": "key"}, WrongType),
        (gantrymq.Producer, {"tls": True}, WrongType),
        (gantrymq.Producer, {"serialize_type": 7}, ConfigError),
        (gantrymq.SyncProducer, {"retries": -1}, ConfigError),
        (gantrymq.PushConsumer, {"group": "g", "listener": 3}, WrongType),
        (gantrymq.SyncPushConsumer, {"group": "g", "listener": None}, WrongType),
        (gantrymq.PushConsumer, {"group": "g", "listener": print, "max_reconsume_times": -1}, ConfigError),
        (gantrymq.PushConsumer, {"group": "g", "listener": print, "model": "CLUSTERING"}, WrongType),
        (gantrymq.PushConsumer, {"group": "g", "listener": print, "limits": 5}, WrongType),
        (gantrymq.PullConsumer, {"group": "g", "strategy": "averagely"}, WrongType),
        (gantrymq.PullConsumer, {"group": "g", "on_assigned": []}, WrongType),
        (gantrymq.PullConsumer, {"group": "g", "auto_commit": "no"}, WrongType),
        (gantrymq.PullConsumer, {"group": "g", "batch_size": 1.5}, WrongType),
        (gantrymq.PopConsumer, {"group": "g", "batch_size": 33}, ConfigError),
        (gantrymq.PopConsumer, {"group": "g", "invisible_s": 0}, ConfigError),
        (gantrymq.PopConsumer, {"group": "g", "invisible_s": 43_201.0}, ConfigError),
        (gantrymq.PopConsumer, {"group": "g", "held_max": 0}, ConfigError),
        (gantrymq.PopConsumer, {"group": "g", "max_reconsume_times": 3}, ConfigError),  # that is for ordered=True
        (gantrymq.PopConsumer, {"group": "g", "ordered": True, "max_reconsume_times": -1}, ConfigError),
        (gantrymq.PopConsumer, {"group": "g", "trace_sample": 1.5}, ConfigError),
        (FlowLimits, {"messages_per_queue": 0}, ConfigError),
        (gantrymq.TransactionProducer, {"group": "g", "listener": print}, WrongType),
        (gantrymq.SyncTransactionProducer, {"group": "g", "listener": print}, WrongType),
    ],
)
def test_a_wrong_argument_is_refused_when_the_client_is_made(
    make: Callable[..., Any], keywords: dict[str, Any], error: type[Exception]
) -> None:
    addresses = () if make is FlowLimits else ("h:1",)
    with pytest.raises(error, match=r"=|group|no method"):
        make(*addresses, **keywords)


@pytest.mark.parametrize(
    ("addresses", "error"),
    [
        (7, WrongType), ([5], WrongType), ("", ConfigError), ("localhost", ConfigError), ("a:1;b", ConfigError),
        ("http://a:1", ConfigError),
    ],
)  # fmt: skip
def test_addresses_that_are_none_are_refused_when_the_client_is_made(addresses: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="name server"):
        gantrymq.Producer(addresses)


@pytest.mark.parametrize(
    ("expression", "error", "words"), [(["A"], WrongType, r"TagA \|\| TagB"), ("A && B", ConfigError, "one tag")]
)
def test_a_subscription_that_selects_nothing_is_refused(expression: Any, error: type[Exception], words: str) -> None:
    consumer = gantrymq.PushConsumer("h:1", group="g", listener=lambda messages: None)
    with pytest.raises(error, match=words):
        consumer.subscribe("T", expression)


async def test_a_poll_without_a_subscription_is_refused() -> None:
    async with gantrymq.PullConsumer("127.0.0.1:1", group="g") as consumer:
        with pytest.raises(ConfigError, match="subscribe or assign"):
            await consumer.poll(0)


async def test_a_queue_of_another_topic_is_refused() -> None:
    other = gantrymq.MessageQueue("b", "broker", 0)
    async with gantrymq.Producer("127.0.0.1:1") as producer:
        for act in (
            producer.send(gantrymq.Message("a", b"x"), queue=other),
            producer.send_batch([gantrymq.Message("a", b"x")], queue=other),
        ):
            with pytest.raises(ConfigError, match="topic b, the message to topic a"):
                await act
        with pytest.raises(WrongType, match="MessageQueue"):
            await producer.send(gantrymq.Message("a", b"x"), queue=3)  # type: ignore[arg-type]
        with pytest.raises(WrongType, match="sharding_key=7"):
            await producer.send(gantrymq.Message("a", b"x"), sharding_key=7)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="in_flight"):
            await producer.send_many([gantrymq.Message("a", b"x")], in_flight=0)
