"""The setting GANTRYMQ: what Django's system checks say of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gantrymq.contrib.django import consumer
from gantrymq.contrib.django.apps import check_setting
from gantrymq.contrib.django.consuming import registered
from gantrymq.contrib.django.settings import OutboxSettings, current
from gantrymq.errors import ConfigError, WrongType

RIGHT = {"NAME_SERVERS": "127.0.0.1:9876"}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("127.0.0.1:9876", "GANTRYMQ: a dictionary is wanted, not str"),
        ({}, "no name server: give at least one"),
        ({"NAME_SERVERS": "broker"}, "such as 127.0.0.1:9876"),
        ({"NAME_SERVERS": 9876}, 'GANTRYMQ["NAME_SERVERS"]: name servers: "host:port;host:port" or a sequence'),
        ({**RIGHT, "PRODUCERS": {}}, "GANTRYMQ: 'PRODUCERS' means nothing; did you mean PRODUCER?"),
        ({**RIGHT, "PRODUCER": ["shop"]}, 'GANTRYMQ["PRODUCER"]: a dictionary with texts as keys is wanted'),
        ({**RIGHT, "PRODUCER": {"gruop": "shop"}}, "'gruop' means nothing; did you mean group?"),
        ({**RIGHT, "PRODUCER": {"retries": -1}}, 'GANTRYMQ["PRODUCER"]: retries=-1: it must be at least 0'),
        ({**RIGHT, "CONSUMER": {"concurrency": "4"}}, "concurrency='4': a whole number is wanted, not str"),
        ({**RIGHT, "OUTBOX": {"POLL": 1}}, "'POLL' means nothing; did you mean POLL_S?"),
        ({**RIGHT, "OUTBOX": {"POLL_S": 0}}, "poll_s=0: it must be more than 0"),
        ({**RIGHT, "OUTBOX": {"RETRY_MAX_S": 0.5}}, "retry_max_s=0.5: it must be at least retry_first_s"),
    ],
)
def test_each_mistake_is_one_error_that_names_it(settings: Any, value: object, told: str) -> None:
    settings.GANTRYMQ = value
    (error,) = check_setting()
    assert told in error.msg and error.id == "gantrymq.E002"
    with pytest.raises(ImproperlyConfigured, match="GANTRYMQ"):
        current()


def test_a_missing_setting_comes_with_an_example_and_a_right_one_passes(settings: Any) -> None:
    (error,) = check_setting()
    assert error.id == "gantrymq.E001" and error.hint and "NAME_SERVERS" in error.hint
    settings.GANTRYMQ = {**RIGHT, "PRODUCER": {"group": "shop"}, "OUTBOX": {"BATCH": 7}}
    assert check_setting() == []
    assert (current().producer, current().outbox.batch) == ({"group": "shop"}, 7)


def test_pauses_double_up_to_the_longest() -> None:
    own = OutboxSettings(retry_first_s=1.0, retry_max_s=300.0)
    for tries, longest in ((1, 1), (2, 2), (5, 16), (9, 256), (10, 300), (10_000, 300)):
        assert longest * 0.75 <= own.pause_s(tries) <= longest


def test_a_group_has_one_function_and_that_is_a_plain_one() -> None:
    @consumer("a", group="test-settings")
    def first(messages: list[Any]) -> None:
        """Takes nothing."""

    with pytest.raises(ConfigError, match="first consumes for it already"):

        @consumer("b", group="test-settings")
        def second(messages: list[Any]) -> None:
            """Is refused."""

    with pytest.raises(WrongType, match="a plain function is wanted"):

        @consumer("a", group="test-settings-async")
        async def third(messages: list[Any]) -> None:
            """Is refused."""

    assert [each.listener for each in registered(["test-settings"])] == [first]
    with pytest.raises(ConfigError, match=r"no function consumes for the group other; there are .*test-settings"):
        registered(["other"])
