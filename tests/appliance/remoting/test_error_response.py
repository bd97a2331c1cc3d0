"""What a client is told of a request that failed, and what only the log is."""

from __future__ import annotations

import logging

import pytest

from appliance.errors import BrokerError
from appliance.remoting.error_response import REMARK_CHARS_MAX, error_response
from gantrymq.errors import BodyError, MessageRejected
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand


@pytest.fixture
def request_() -> RemotingCommand:
    return RemotingCommand.request(310, {"a": "P", "e": "two"})


def test_what_was_expected_keeps_its_code_and_words(request_: RemotingCommand) -> None:
    answer = error_response(request_, BrokerError(ResponseCode.TOPIC_NOT_EXIST, "topic[T] not exist"))
    assert (answer.opaque, answer.code, answer.remark) == (
        request_.opaque,
        ResponseCode.TOPIC_NOT_EXIST,
        "topic[T] not exist",
    )


@pytest.mark.parametrize("error", [BodyError("topic: not a text"), MessageRejected("properties too long")])
def test_a_wrong_body_or_message_is_an_invalid_parameter(request_: RemotingCommand, error: Exception) -> None:
    answer = error_response(request_, error)
    assert (answer.code, answer.remark) == (ResponseCode.INVALID_PARAMETER, str(error))


@pytest.mark.parametrize(
    ("error", "remark"),
    [
        (KeyError("b"), "header field b is missing"),
        (ValueError("invalid literal for int() with base 10: 'two'"), "header field e is malformed: invalid literal"),
    ],
)
def test_a_wrong_field_is_named(request_: RemotingCommand, error: Exception, remark: str) -> None:
    answer = error_response(request_, error)
    assert answer.code == ResponseCode.INVALID_PARAMETER
    assert str(answer.remark).startswith(remark)


@pytest.mark.parametrize("error", [KeyError("a"), KeyError(7), ValueError("of something else"), ZeroDivisionError("x")])
def test_a_bug_is_told_to_the_log_in_full_and_to_the_client_in_two_words(
    request_: RemotingCommand, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = error_response(request_, error)
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, "system error")
    (record,) = caplog.records
    assert record.exc_info is not None and record.exc_info[1] is error
    assert (record.__dict__["event"], record.__dict__["code"]) == ("handler_failed", 310)


def test_a_remark_never_echoes_more_than_its_limit(request_: RemotingCommand, caplog: pytest.LogCaptureFixture) -> None:
    long = "x" * (10 * REMARK_CHARS_MAX)
    answer = error_response(request_, BrokerError(ResponseCode.MESSAGE_ILLEGAL, long))
    assert answer.remark == long[:REMARK_CHARS_MAX] + "…"
