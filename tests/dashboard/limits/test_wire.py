"""What leaves for the cluster on behalf of an account with a limit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from dashboard.limits.names import NO_LIMIT, NameLimit, NameRefused, use
from dashboard.limits.wire import FIELDS, IN_BODY, check
from gantrymq.message.topics import TRACE_TOPIC
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand


@pytest.fixture(autouse=True)
def _limited() -> Iterator[None]:
    use(NameLimit(("mine-",)))
    yield
    use(NO_LIMIT)


def passes(code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> bool:
    try:
        check(RemotingCommand.request(code, fields, body))
    except NameRefused:
        return False
    return True


@pytest.mark.parametrize(
    ("code", "topic", "properties"),
    [(RequestCode.SEND_MESSAGE, "topic", "properties"), (RequestCode.SEND_MESSAGE_V2, "b", "i")],
)
def test_a_message_is_dispatched_to_no_other_queue_by_a_property(code: int, topic: str, properties: str) -> None:
    fields = {topic: "mine-a"}
    assert passes(code, fields | {properties: "KEYS\x01k\x02INNER_MULTI_DISPATCH\x01mine-b,mine-c\x02"})
    for queues in ("their-a", "mine-b,their-a", "%LMQ%their-a", "their-a,mine-b"):
        assert not passes(code, fields | {properties: f"KEYS\x01k\x02INNER_MULTI_DISPATCH\x01{queues}\x02"})


@pytest.mark.parametrize("code", sorted(code for code, fields in FIELDS.items() if fields))
def test_each_named_field_must_be_allowed(code: int) -> None:
    fields = dict.fromkeys(FIELDS[code], "mine-a")
    assert passes(code, fields)
    for field in fields:
        assert not passes(code, fields | {field: "their-a"})
        assert not passes(code, {key: value for key, value in fields.items() if key != field})


@pytest.mark.parametrize("code", sorted(set(map(int, RequestCode)) - set(FIELDS)))
def test_what_is_not_in_the_table_is_refused(code: int) -> None:
    body = json.dumps({"groupName": "their-a"}).encode()
    names = dict.fromkeys(("topic", "b", "group", "consumerGroup", "groupName"), "mine-a")
    assert not passes(code, names, body)
    use(NO_LIMIT)
    assert passes(code, names, body)


@pytest.mark.parametrize("code", sorted(IN_BODY))
def test_each_name_in_a_body_must_be_allowed(code: int) -> None:
    names = dict.fromkeys(IN_BODY[code], "mine-a")
    assert passes(code, None, json.dumps(names).encode())
    for field in names:
        assert not passes(code, None, json.dumps(names | {field: "their-a"}).encode())
        assert not passes(code, None, json.dumps({key: names[key] for key in names if key != field}).encode())


def test_the_trace_topic_is_asked_for_one_message_and_not_read() -> None:
    assert passes(RequestCode.QUERY_MESSAGE, {"topic": TRACE_TOPIC})
    assert not passes(RequestCode.PULL_MESSAGE, {"topic": TRACE_TOPIC})
    assert not passes(RequestCode.SEND_MESSAGE, {"topic": TRACE_TOPIC})
