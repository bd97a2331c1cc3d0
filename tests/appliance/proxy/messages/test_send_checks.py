from __future__ import annotations

import contextlib
import gzip
import time
from typing import Any

import pytest

from appliance.proxy.messages.send_checks import accepted_types, check_type, outgoing_of
from appliance.proxy.messages.statuses import Refused
from appliance.proxy.protocol.definition_pb2 import Code, Message, MessageType, SystemProperties
from gantrymq.message import properties as names
from gantrymq.message.sysflag import TRANSACTION_PREPARED

MB = 1 << 20


def made(body: bytes = b"x", user: dict[str, str] | None = None, **system: Any) -> Message:
    return Message(
        body=body, user_properties=user or {}, system_properties=SystemProperties(**{"message_id": "01AB", **system})
    )


def properties_of(message: Message) -> dict[str, str]:
    return names.decode_properties(outgoing_of(message, "t").properties)


def in_s(seconds: float) -> dict[str, int]:
    return {"seconds": int(time.time() + seconds)}


REFUSED = [
    (made(b""), Code.MESSAGE_BODY_EMPTY),
    (made(b"x" * (4 * MB + 1)), Code.MESSAGE_BODY_TOO_LARGE),
    (made(gzip.compress(b"\0" * (4 * MB + 1)), body_encoding=2), Code.MESSAGE_BODY_TOO_LARGE),
    (made(b"no gzip", body_encoding=2), Code.MESSAGE_CORRUPTED),
    (made(gzip.compress(b"a" * 999)[:-9], body_encoding=2), Code.MESSAGE_CORRUPTED),
    (made(user={f"k{n}": "v" for n in range(129)}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    (made(user={"k": "v" * (16 << 10)}), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    (made(keys=["k" * 33_000]), Code.MESSAGE_PROPERTIES_TOO_LARGE),
    (made(user={"UNIQ_KEY": "v"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (made(user={"TIMER_DELIVER_MS": "1"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (made(user={"a\x01b": "v"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (made(user={"a": "v\x02UNIQ_KEY\x01x"}), Code.ILLEGAL_MESSAGE_PROPERTY_KEY),
    (made(tag="a|b"), Code.ILLEGAL_MESSAGE_TAG),
    (made(tag=" "), Code.ILLEGAL_MESSAGE_TAG),
    (made(tag="a\x01"), Code.ILLEGAL_MESSAGE_TAG),
    (made(keys=["a", "b\x02c"]), Code.ILLEGAL_MESSAGE_KEY),
    (made(message_group="g" * 64), Code.ILLEGAL_MESSAGE_GROUP),
    (made(message_group="\x02"), Code.ILLEGAL_MESSAGE_GROUP),
    (made(message_id=" "), Code.ILLEGAL_MESSAGE_ID),
    (made(message_id="a\x02TAGS\x01b"), Code.ILLEGAL_MESSAGE_ID),
    (made(delivery_timestamp=in_s(7 * 24 * 3600)), Code.ILLEGAL_DELIVERY_TIME),  # a run may take hours until then
    (made(message_type=4, orphaned_transaction_recovery_duration={"seconds": 3601}), Code.BAD_REQUEST),
    (made(message_type=4, message_group="g"), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    (made(message_type=4, delivery_timestamp=in_s(9)), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    (made(message_group="g", delivery_timestamp=in_s(9)), Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE),
    (made(born_host="\x01"), Code.BAD_REQUEST),
    (made(trace_context="\x02"), Code.BAD_REQUEST),
]


@pytest.mark.parametrize(("message", "code"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_not_be_sent_is_refused_with_rocketmqs_code(message: Message, code: Code) -> None:
    with pytest.raises(Refused) as refused:
        outgoing_of(message, "t")
    assert Code.Name(refused.value.code) == Code.Name(code)


def test_the_largest_message_is_taken() -> None:
    largest = made(b"x" * 4 * MB, {f"k{n:03}": "v" * 90 for n in range(128)}, message_group="g" * 63)
    assert len(outgoing_of(largest, "t").body) == 4 * MB


def test_names_are_those_of_rocketmq_4() -> None:
    at = int(time.time()) + 60
    told = properties_of(
        made(
            user={"mine": "yes"},
            tag="red",
            keys=["k1", "k2"],
            born_host="host",
            born_timestamp={"seconds": 7},
            delivery_timestamp={"seconds": at},
            trace_context="00-1",
        )
    )
    assert told == {
        "mine": "yes",
        "TAGS": "red",
        "KEYS": "k1 k2",
        "UNIQ_KEY": "01AB",
        "PGROUP": "t",
        "__BORNHOST": "host",
        "BORN_TIMESTAMP": "7000",
        "TIMER_DELIVER_MS": str(at * 1000),
        "TRACE_CONTEXT": "00-1",
    }


def test_a_half_message_is_one_for_brokers_too() -> None:
    half = outgoing_of(made(message_type=4, orphaned_transaction_recovery_duration={"seconds": 9}), "t")
    told = names.decode_properties(half.properties)
    assert half.sys_flag == TRANSACTION_PREPARED
    assert (told["TRAN_MSG"], told["CHECK_IMMUNITY_TIME_IN_SECONDS"]) == ("true", "9")


def test_a_packed_body_is_stored_as_it_was() -> None:
    assert outgoing_of(made(gzip.compress(b"hello"), body_encoding=2), "t").body == b"hello"


@pytest.mark.parametrize(
    ("attribute", "system", "is_taken"),
    [
        ("", {"message_group": "g"}, True),
        ("MIXED", {"message_group": "g"}, True),
        ("NORMAL", {}, True),
        ("NORMAL", {"message_group": "g"}, False),
        ("FIFO", {"message_group": "g"}, True),
        ("FIFO", {}, False),
        ("DELAY", {"delivery_timestamp": {"seconds": 9}}, True),
        ("DELAY", {"message_type": MessageType.TRANSACTION}, False),
        ("TRANSACTION", {"message_type": MessageType.TRANSACTION}, True),
        ("TRANSACTION", {}, False),
    ],
)
def test_a_topic_takes_messages_of_its_type(attribute: str, system: dict[str, Any], is_taken: bool) -> None:
    assert accepted_types(attribute)
    if is_taken:
        check_type(made(**system), attribute)
        return
    with pytest.raises(Refused) as refused:
        check_type(made(**system), attribute)
    assert refused.value.code == Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE


@pytest.mark.parametrize("seconds", [1 << 62, -(1 << 62)])
def test_a_time_beyond_all_calendars_is_no_crash(seconds: int) -> None:
    with pytest.raises(Refused) if seconds > 0 else contextlib.nullcontext():
        outgoing_of(made(delivery_timestamp={"seconds": seconds}), "t")
