"""The fast path against the Python path, which is the reference: the same bytes, and what is left behind compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send
from tests.bounded import bounded


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
@pytest.mark.parametrize("code", [310, 320])
async def test_a_burst_of_sends(pair: Pair, serialize_type: int, code: int) -> None:
    await first_messages(pair)
    data = b"".join(
        send(number, b"b" * (number * 7 % 300), code=code, serialize_type=serialize_type) for number in range(10, 500)
    )
    await pair.receive(data)
    assert pair.fast.served_fast > 0
    pair.check()


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_batches(pair: Pair, serialize_type: int) -> None:
    await first_messages(pair)
    for number in range(10, 40):
        await pair.receive(batch(number, [b"x" * size for size in range(number)], serialize_type=serialize_type))
    assert pair.fast.served_fast == 30
    pair.check()


PROPERTIES = [
    "",
    "a\x01b",
    "a\x01b\x02",
    "TAGS\x01t\x02WAIT\x01true",
    "WAIT\x01true\x02TAGS\x01t",
    "TAGS\x01t\x02WAIT\x01false\x02KEYS\x01k",
    "TAGS\x01t\x02WAIT\x01true\x02WAIT\x01true\x02KEYS\x01k",
    "KEYS\x01a b  c \x02TAGS\x01\u00e9\u4e2d\U0001f600",
    "KEYS\x01" + " ".join(map(str, range(70))),
    "KEYS\x01" + " ".join(map(str, range(64))),
    "xKEYS\x01a\x02KEYS\x01b",
    "KEYS\x01a\x02xKEYS\x01b c",
    "TAGS\x01a\x02TAGS\x01b",
    "xTAGS\x01a",
    "UNIQ_KEY\x01\x02TAGS\x01a",
    "UNIQ_KEY\x01one\x02UNIQ_KEY\x01two",
    "UNIQ_KEY\x01\u4e2d\u6587\x02KEYS\x01\u00fc \U0001f600",
    "DELAY\x013\x02TAGS\x01a",
    "TIMER_DELAY_SEC\x015",
    "MODEL\x01x\x02a\x01DEL",
    "TRAN_MSG\x01true",
    "a\x01\x01\x02\x02b",
    "\x02\x02",
    "\x01",
    'q"\\/\b\f\n\r\t\x00z\x01v',
    "x" * 32_700,
    "x" * 32_760,
    "x" * 40_000,
]


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_properties_of_every_kind(pair: Pair, serialize_type: int) -> None:
    await first_messages(pair)
    for number, properties in enumerate(PROPERTIES, 10):
        await pair.receive(send(number, b"1", properties, serialize_type=serialize_type))
        if number % 3:
            await pair.receive(send(1000 + number, b"2", properties, serialize_type=serialize_type, flag=2))
    assert pair.fast.served_fast > 10
    pair.check()


CHANGES = [
    {"e": "-1"}, {"e": "4"}, {"e": "3"}, {"e": "+1"}, {"e": "01"}, {"e": ""}, {"e": "1.0"}, {"e": "99999999999"},
    {"f": "4"}, {"f": "8"}, {"f": "12"}, {"f": "16"}, {"f": "1"}, {"f": "-2147483648"},
    {"g": "-1"}, {"g": "9223372036854775807"}, {"g": "9223372036854775808"}, {"g": "-9223372036854775808"},
    {"h": "-7"}, {"j": "3"}, {"j": "x"}, {"l": "16"}, {"l": "y"}, {"d": "z"}, {"m": "TRUE"}, {"m": "true"},
    {"b": "unknown"}, {"b": "a"}, {"b": ""}, {"b": "%RETRY%g"}, {"b": "TBW102"}, {"b": "x" * 200}, {"b": "\u00e9"},
    {"n": "broker-a"}, {"topic": "payments"}, {"AccessKey": "k", "Signature": "s"}, {"c": "\u4e2d"},
]  # fmt: skip


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ])
async def test_fields_of_every_kind(pair: Pair, serialize_type: int) -> None:
    await first_messages(pair)
    for number, changes in enumerate(CHANGES, 10):
        await pair.receive(send(number, serialize_type=serialize_type, **changes))
    pair.check()


async def test_sends_of_10_have_long_names(tmp_path: Path) -> None:
    fields = {
        "producerGroup": "p", "topic": "orders", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "1",
        "sysFlag": "0", "bornTimestamp": "5", "flag": "0", "properties": "TAGS\x01t", "reconsumeTimes": "0",
        "unitMode": "false",
    }  # fmt: skip
    with pair_of_brokers(tmp_path) as pair:
        await first_messages(pair)
        for number, changes in enumerate(({}, {"batch": "false"}, {"b": "payments"}, {"e": "2"}, {"queueId": "x"})):
            request = RemotingCommand(10, fields | changes, b"x", None, 10 + number, 0, "JAVA", 401, JSON)
            await pair.receive(request.encode())
        assert pair.fast.served_fast == 2
        pair.check()


HEADERS = [
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":401,"extFields":%s}',
    b'{"flag":0,"language":"JAVA","opaque":9,"version":401,"code":310,"extFields":%s}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9,"version":401,"extFields":%s,"remark":null}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9,"version":401,"extFields":%s,"remark":"r"}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9,"version":401,"extFields":%s} ',
    b'{"code":310, "flag":0,"language":"JAVA","opaque":9,"version":401,"extFields":%s}',
    b'{"code":310,"flag":0,"flag":2,"language":"JAVA","opaque":9,"version":401,"extFields":%s}',
    b'{"code":310,"flag":0,"opaque":9,"extFields":%s}',
    b'{"code":"310","flag":"0","language":"JAVA","opaque":"9","version":"401","extFields":%s}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":4294967296,"version":401,"extFields":%s}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9.0,"version":401,"extFields":%s}',
    b'{"code":310,"flag":1,"language":"JAVA","opaque":9,"version":401,"extFields":%s}',
    b'{"code":310,"flag":0,"language":7,"opaque":9,"version":401,"extFields":%s}',
    b'{"code":310,"flag":0,"language":"JAVA","opaque":9,"version":401,"body":"eA==","extFields":%s}',
    b'{"code":310,"flag":0,"language":"\xff","opaque":9,"version":401,"extFields":%s}',
]
FIELDS = [
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0"}',
    b'{"b":"orders","e":1,"f":"0","g":"1","h":"0"}',
    b'{"b":"orders","e":"1","e":"2","f":"0","g":"1","h":"0"}',
    b'{"\\u0062":"orders","e":"1","f":"0","g":"1","h":"0"}',
    b'{"b":"\\u006frders","e":"1","f":"0","g":"1","h":"0"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"TAGS\\u0001\\u00e9\\u4e2d\\n\\/"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"TAGS\\u0001\\ud83d\\ude00"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"TAGS\\u0001\\ud83d"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"TAGS\\x01a"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"TAGS\x01a"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"\xc3\xa9"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","i":"\xed\xa0\x80"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0","z":"\\q"}',
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0",}',
    b'{"b":"orders","e":"1","f":"0","g":"1"}',
    b"{}",
    b"null",
    b'{"b":"orders","e":"1","f":"0","g":"1","h":"0"',
]


@pytest.mark.parametrize("header", HEADERS)
async def test_headers_of_every_kind(pair: Pair, header: bytes) -> None:
    for fields in FIELDS:
        text = header % fields
        frame = len(text).to_bytes(4) + text + b"body"
        await first_messages(pair)
        await pair.receive(len(frame).to_bytes(4) + frame)
        for side in (pair.fast, pair.plain):
            if side.socket.is_over:
                side.connect()
    pair.check()


async def test_frames_that_arrive_in_pieces(pair: Pair) -> None:
    await first_messages(pair)
    data = b"".join([send(number) for number in range(10, 20)])
    await pair.receive_in_pieces(data)
    pair.check()


async def test_cut_at_every_byte(pair: Pair) -> None:
    await first_messages(pair)
    for serialize_type in (JSON, ROCKETMQ):
        await pair.receive_cut(send(5, serialize_type=serialize_type))
        await pair.receive_cut(batch(6, [b"1", b"22"], serialize_type=serialize_type))
    pair.check()


async def test_files_and_index_files_that_fill_up(tmp_path: Path) -> None:
    small = {"commit_log_file_bytes": 64 * 1024, "index_entries": 50, "index_slots": 20}
    with pair_of_brokers(tmp_path, store=small) as pair:
        await first_messages(pair)
        for start in range(10, 600, 40):
            await pair.receive(b"".join(send(number, b"b" * 500) for number in range(start, start + 40)))
            await pair.receive(batch(start, [b"x" * 300] * 30))
        assert pair.fast.served_fast > 500
        pair.check()


names = st.sampled_from(["TAGS", "KEYS", "UNIQ_KEY", "WAIT", "DELAY", "a", "xTAGS", "CLUSTER", "", "\u4e2d"])
values = st.text(alphabet=st.sampled_from(list('ab 1\x01\x02\u00e9\u4e2d\U0001f600"\\/\n')), max_size=12)


@st.composite
def frames_of_a_client(draw: st.DrawFn) -> bytes:
    number = draw(st.integers(0, 2**31 - 1))
    properties = "\x02".join(f"{draw(names)}\x01{draw(values)}" for _ in range(draw(st.integers(0, 5))))
    body = draw(st.binary(max_size=40))
    return send(
        number,
        body,
        properties,
        code=draw(st.sampled_from([310, 320])),
        serialize_type=draw(st.sampled_from([JSON, ROCKETMQ])),
        flag=draw(st.sampled_from([0, 0, 2])),
        b=draw(st.sampled_from(["orders", "a", "payments", "other"])),
        m=draw(st.sampled_from(["false", "false", "true"])),
    )


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Frames with a few bytes changed; lengths mostly stay."""
    data = bytearray(b"".join(draw(st.lists(frames_of_a_client(), min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@bounded(60)
@given(st.lists(mutated(), min_size=1, max_size=4))
async def test_made_up_requests(tmp_path_factory: pytest.TempPathFactory, data: list[bytes]) -> None:
    with pair_of_brokers(tmp_path_factory.mktemp("pair")) as pair:
        await first_messages(pair)
        for part in data:
            await pair.receive(part)
        pair.check()
