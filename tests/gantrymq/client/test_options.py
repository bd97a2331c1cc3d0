"""The keyword arguments of producers and consumers: their names, types and defaults are an interface."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from gantrymq import (
    ConsumeFrom,
    MessageModel,
    Producer,
    PullConsumer,
    PushConsumer,
    SyncProducer,
    SyncPullConsumer,
    SyncPushConsumer,
    SyncTransactionProducer,
    TransactionProducer,
)
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.consume.options import (
    PullConsumerKeywords,
    PullConsumerOptions,
    PushConsumerKeywords,
    PushConsumerOptions,
)
from gantrymq.client.consume.rebalance import allocate_averagely
from gantrymq.client.produce.options import ProducerKeywords, ProducerOptions
from gantrymq.errors import ConfigError, MessageRejected
from gantrymq.remoting.command import JSON

REQUIRED = inspect.Parameter.empty
CLIENT = {"instance_name": None, "credentials": None, "tls": None, "serialize_type": JSON}
PRODUCER = {
    "delivery_timeout_s": 30.0, "retries": None, "linger_s": 0.0,
    "batch_bytes": 65536, "buffer_bytes": 33554432, "compress_from_bytes": 4096, "trace": False,
    "trace_topic": "RMQ_SYS_TRACE_TOPIC",
} | CLIENT  # fmt: skip
CONSUMER = {
    "group": REQUIRED, "model": MessageModel.CLUSTERING, "consume_from": ConsumeFrom.LAST_OFFSET,
    "consume_from_ms": None, "pull_batch": 32, "limits": None, "strategy": allocate_averagely, "offsets_folder": None,
} | CLIENT  # fmt: skip
PUSH = CONSUMER | {
    "listener": REQUIRED, "concurrency": 20, "batch_size": 1, "ordered": False, "suspend_s": 1.0,
    "max_reconsume_times": None, "overdue_s": 900.0, "close_wait_s": 10.0, "trace": False,
    "trace_topic": "RMQ_SYS_TRACE_TOPIC",
}  # fmt: skip
PULL = CONSUMER | {"batch_size": 10, "auto_commit": True}
IN_TRANSACTIONS = PRODUCER | {"listener": REQUIRED, "group": REQUIRED, "topics": (), "threads": 8}


def keywords_of(constructor: Callable[..., Any], options: type[ClientOptions]) -> dict[str, Any]:
    """The keyword arguments and their defaults: those that the signature writes out, those of its TypedDict."""
    parameters = inspect.signature(constructor).parameters
    written_out = {name: p.default for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    (typed_dict,) = get_type_hints(constructor.__init__)["keywords"].__args__  # type: ignore[misc]
    defaults = {each.name: each.default for each in dataclasses.fields(options)}
    return written_out | {name: defaults[name] for name in get_type_hints(typed_dict)}


@pytest.mark.parametrize(
    ("constructor", "options", "expected"),
    [
        (Producer, ProducerOptions, PRODUCER | {"group": "DEFAULT_PRODUCER"}),
        (SyncProducer, ProducerOptions, PRODUCER | {"group": "DEFAULT_PRODUCER"}),
        (TransactionProducer, ProducerOptions, IN_TRANSACTIONS),
        (SyncTransactionProducer, ProducerOptions, IN_TRANSACTIONS),
        (PushConsumer, PushConsumerOptions, PUSH),
        (SyncPushConsumer, PushConsumerOptions, PUSH),
        (PullConsumer, PullConsumerOptions, PULL),
        (SyncPullConsumer, PullConsumerOptions, PULL),
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
    ],
)
def test_keywords_and_options_have_the_same_names_and_types(keywords: type, options: type[ClientOptions]) -> None:
    fields = get_type_hints(options)
    assert get_type_hints(keywords) == {
        name: kind for name, kind in fields.items() if name not in ("name_servers", "group")
    }


def test_a_keyword_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="concurency"):
        PushConsumer("h:1", group="g", listener=print, concurency=3)  # type: ignore[call-arg, arg-type]


@pytest.mark.parametrize("number", ["batch_size", "pull_batch", "concurrency"])
def test_a_consumer_needs_at_least_one_of_each(number: str) -> None:
    with pytest.raises(ConfigError, match=number):
        PushConsumerOptions(name_servers="h:1", group="g", **{number: 0})  # type: ignore[arg-type]


def test_a_group_must_be_named_as_brokers_allow_it() -> None:
    for make in (ProducerOptions, PushConsumerOptions, PullConsumerOptions):
        with pytest.raises(MessageRejected, match="illegal characters"):
            make(name_servers="h:1", group="not a group")


def test_to_begin_at_a_time_needs_the_time() -> None:
    with pytest.raises(ConfigError, match="consume_from_ms"):
        PullConsumerOptions(name_servers="h:1", group="g", consume_from=ConsumeFrom.TIMESTAMP)


def test_a_broadcasting_consumer_keeps_its_client_id_over_restarts() -> None:
    options = PullConsumerOptions(name_servers="h:1", group="g", model=MessageModel.BROADCASTING)
    assert options.instance_name == "DEFAULT"
    named = PullConsumerOptions(name_servers="h:1", group="g", model=MessageModel.BROADCASTING, instance_name="one")
    assert named.instance_name == "one"


@pytest.mark.parametrize(("ordered", "times", "limit"), [(False, None, 16), (True, None, 2147483647), (True, 3, 3)])
def test_a_message_is_a_dead_letter_after_so_many_times(ordered: bool, times: int | None, limit: int) -> None:
    options = PushConsumerOptions(name_servers="h:1", group="g", ordered=ordered, max_reconsume_times=times)
    assert options.reconsume_limit == limit
