"""Signed sends and pulls by the fast path and by the Python path: the same bytes, and what is left behind compared."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.acl.access import HIDDEN_STAMP
from gantrymq.message.batch import encode_batch
from gantrymq.message.model import Message
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from gantrymq.remoting.signature import SIGNATURE, STAMP, Stamper, signed_content
from tests.appliance.acl.cluster import accounts_file
from tests.appliance.fast_path.rig import Pair, pair_of_brokers
from tests.appliance.fast_path.signed import (
    ACCOUNTS,
    ADMIN,
    EVERYBODY,
    LOW,
    RIGHT,
    UNKNOWN,
    WRONG,
    first_messages,
    pull,
    readable_messages,
    request,
    signed,
)
from tests.bounded import bounded


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with pair_of_brokers(tmp_path, accounts=ACCOUNTS) as pair:
        yield pair


@pytest.mark.parametrize("stamper", [Stamper, lambda: None])
@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_a_burst_of_signed_sends(pair: Pair, encoding: int, stamper: Callable[[], Stamper | None]) -> None:
    await first_messages(pair)
    made = stamper()
    sends = [request(number, b"b" * (number * 37 % 5000), encoding=encoding) for number in range(10, 300)]
    await pair.receive(b"".join(signed(RIGHT, send, made) for send in sends))
    assert pair.fast.served_fast == 290
    pair.check()


@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_batches_one_way_and_the_long_names(tmp_path: Path, encoding: int) -> None:
    fields = {
        "producerGroup": "p", "topic": "orders", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "1",
        "sysFlag": "0", "bornTimestamp": "5", "flag": "0", "properties": "TAGS\x01t", "reconsumeTimes": "0",
    }  # fmt: skip
    with pair_of_brokers(tmp_path, accounts=ACCOUNTS) as pair:
        await first_messages(pair)
        stamper = Stamper()
        for number in range(10, 20):
            body = encode_batch([Message("orders", b"x" * size, keys=[f"k{size}"]) for size in range(number)])
            batch = request(number, body, code=320, encoding=encoding, i="", m="true")
            long_names = RemotingCommand(10, dict(fields), b"1", None, 30 + number, 0, "JAVA", 401, encoding)
            for send in (batch, request(100 + number, encoding=encoding, flag=2), long_names):
                await pair.receive(signed(RIGHT, send, stamper))
        assert pair.fast.served_fast == 30
        pair.check()


@pytest.mark.parametrize(("host", "served"), [("127.0.0.1", 15), ("10.9.9.7", 64), ("10.1.1.1", 23)])
@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_every_account_from_every_address(pair: Pair, encoding: int, host: str, served: int) -> None:
    """Known and unknown, right and wrong, with permission and without, stamped and not."""
    await first_messages(pair)
    pair.connect(host)
    stamper = Stamper()
    number, sent = 10, []
    for account in EVERYBODY:
        for topic in ("orders", "payments", "a", "nowhere"):
            for made in (stamper, None):
                number += 1
                sent.append(signed(account, request(number, b=topic, e="0", encoding=encoding), made))
                await pair.receive(sent[-1])
    await pair.receive(request(number + 1, encoding=encoding).encode())
    assert pair.fast.served_fast == served
    pair.check()
    await pair.receive(b"".join(sent))  # stamps that were used up are refused
    pair.check()
    assert (pair.fast.broker.access.denied.total() == 0) == (host == "10.9.9.7")  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_a_request_that_is_sent_again_is_refused(pair: Pair, encoding: int) -> None:
    """On the same connection and on another one, also when the first one was refused for its topic."""
    await first_messages(pair)
    stamper = Stamper()
    older = signed(RIGHT, request(10, encoding=encoding), stamper)
    denied = signed(RIGHT, request(11, b="payments", encoding=encoding), stamper)
    frame = signed(RIGHT, request(12, encoding=encoding), stamper)
    for data in (denied, denied, frame, frame, older):
        await pair.receive(data)
    assert pair.fast.served_fast == 1
    pair.check()
    pair.connect()
    await pair.receive(frame)
    pair.check()
    for side in (pair.fast, pair.plain):
        assert side.broker.access.denied == {"no_permission": 1, "replayed": 4}  # type: ignore[union-attr]


STAMPS = ["", "x", "1.2.3.4", "0.0123456789abcdef.1.310", "1700000000000.0123456789abcdef.1.320", "1" * 100, "é.1.1.1"]


@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_stamps_of_every_kind(pair: Pair, encoding: int) -> None:
    await first_messages(pair)
    for number, stamp in enumerate([*STAMPS, Stamper().stamp(310)], 10):
        for name in (STAMP, "AccessKeyHidden", "BStamp"):  # the middle one hides it where it was signed
            await pair.receive(signed(RIGHT, request(number, encoding=encoding, **{name: stamp})))
    assert pair.fast.served_fast > len(STAMPS)
    assert pair.fast.broker.access.denied["replayed"] > len(STAMPS)  # type: ignore[union-attr]
    pair.check()


CHANGES: list[dict[str, str]] = [
    {"topic": "payments"}, {"topic": "orders"}, {"n": "broker-a"},
    {"\u4e2d": "\u00e9"}, {"\U0001f600": "x", "\uffff": "y"},
    {"properties": "INNER_MULTI_DISPATCH\x01payments"}, {"i": "INNER_MULTI_DISPATCH\x01payments,orders\x02a\x01b"},
    {"i": "a\x01INNER_MULTI_DISPATCH"}, {"i": 'q\x01"\\/\b\f\n\r\t\x00z'}, {"i": "TAGS\x01\u00e9\u4e2d\U0001f600"},
    {"a": ""}, {"_UNIQUE_KEY_QUERY": "true"}, {"SecurityToken": "t"}, {"accesskey": "x"}, {"": "x"},
    {f"z{index}": "y" * index for index in range(40)},
]  # fmt: skip


@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_fields_of_every_kind(pair: Pair, encoding: int) -> None:
    """Signed with them, and put in afterwards."""
    await first_messages(pair)
    for number, changes in enumerate(CHANGES, 10):
        await pair.receive(signed(RIGHT, request(number, encoding=encoding, **changes)))
        late = request(100 + number, encoding=encoding)
        RIGHT.sign(late)
        late.ext_fields.update(changes)
        await pair.receive(late.encode())
    assert 5 < pair.fast.served_fast < len(CHANGES) + 3
    pair.check()


HEADER = (
    b'{"code":310,"flag":0,"language":"JAVA","opaque":%d,"version":401,'
    b'"extFields":{"b":"orders","e":"1","f":"0","g":"1","h":"0",%s}}'
)
FIELDS = [
    b'"AccessKey":"rightKey1","Signature":"%s"',
    b'"Signature":"%s","AccessKey":"rightKey1"',
    b'"AccessKey":"rightKey1","AccessKey":"rightKey1","Signature":"%s"',
    b'"AccessKey":"rightKey1","Signature":"","Signature":"%s"',
    b'"AccessKey":"rightKey1","Signature":"%s","Signature":""',
    b'"AccessKey":"rightKey1","Signature":"%s","x":"","x":""',
    b'"AccessKey":"right\\u004bey1","Signature":"%s"',
    b'"AccessKey":"rightKey1","Signatur\\u0065":"%s"',
    b'"AccessKey":"","Signature":"%s"',
    b'"AccessKey":null,"Signature":"%s"',
    b'"AccessKey":"rightKey1","Signature":null,"x":"%s"',
    b'"AccessKey":"rightKey1","Signature":"%s\\ud83d\\ude00"',
    b'"AccessKey":"rightKey1","Signature":"%s\\ud83d"',
    b'"AccessKey":"rightKey1","Signature":"%s","x":"\\ud83d"',
    b'"AccessKey":"rightKey1","Signature":"%s","x":"\\ud83d\\ude00"',
    b'"AccessKey":"rightKey1","Signature":"%s","RequestStamp":"1"',
    b'"AccessKey":"rightKey1","Signature":"%s","RequestStamp":"\\u0031"',
    b'"AccessKey":"rightKey1","Signature":"%s' + b"=" * 1000 + b'"',
    b'"AccessKey":"rightKey1"',
    b'"Signature":"%s"',
]


def escaped(signature: bytes) -> bytes:
    return b"".join(b"\\u%04x" % byte for byte in signature)


@pytest.mark.parametrize("escape", [bytes, escaped])
async def test_headers_of_every_kind(pair: Pair, escape: Callable[[bytes], bytes]) -> None:
    """Fields doubled, escaped, absent; signed as the reference reads them, so that some pass."""
    await first_messages(pair)
    for number, fields in enumerate(FIELDS, 10):
        plain = RemotingCommand.request(310, {"b": "orders", "e": "1", "f": "0", "g": "1", "h": "0"})
        RIGHT.sign(plain)
        signature = escape(plain.ext_fields[SIGNATURE].encode())
        text = HEADER % (number, fields % signature if b"%s" in fields else fields)
        frame = len(text).to_bytes(4) + text
        await pair.receive(len(frame).to_bytes(4) + frame)
        pair.check()
    assert pair.fast.served_fast == 2


@pytest.mark.parametrize("host", ["127.0.0.1", "10.9.9.7", "10.1.1.1"])
@pytest.mark.parametrize("encoding", [JSON, ROCKETMQ])
async def test_pulls_of_every_account_from_every_address(pair: Pair, encoding: int, host: str) -> None:
    """Known and unknown, right and wrong, with permission on topic and group and without, stamped and not.

    The fast path serves all that Python would have let pass.
    """
    await readable_messages(pair)
    pair.connect(host)
    before = pair.fast.served_fast
    stamper = Stamper()
    number = 100
    for account in (None, *EVERYBODY):
        for made in (stamper, None):
            for changes in ({}, {"topic": "payments"}, {"consumerGroup": "others"}):
                number += 1
                asked = pull(number, encoding=encoding, body=b"b" * (number % 2), **changes)
                await pair.receive(asked.encode() if account is None else signed(account, asked, made))
    passed = [answer for answer in pair.plain.answers() if answer.opaque > 100 and answer.code == 0]
    assert pair.fast.served_fast - before == len(passed) > 9
    pair.check()


async def test_a_pull_that_is_sent_again_is_refused(pair: Pair) -> None:
    """The stamp is used up by whichever path served it. One that finds nothing is Python's, and has used up none."""
    await readable_messages(pair)
    before = pair.fast.served_fast
    asked = [signed(RIGHT, pull(number, number % 20, sysFlag="4"), Stamper()) for number in range(50, 80)]
    for frame in (*asked, *asked):
        await pair.receive(frame)
    assert 0 < pair.fast.served_fast - before < 30
    assert pair.fast.broker.access.denied["replayed"] == 30  # type: ignore[union-attr]
    pair.check()


def change_accounts(pair: Pair, folder: Path, text: str) -> None:
    for name, side in (("fast", pair.fast), ("plain", pair.plain)):
        accounts_file(folder / name, text)
        side.broker.accounts.refresh()  # type: ignore[union-attr]


async def test_pulls_of_accounts_that_change_while_connected(pair: Pair, tmp_path: Path) -> None:
    await readable_messages(pair)
    before = pair.fast.served_fast
    changes = [('"readers=SUB"', '"readers=DENY"'), ('"orders=PUB|SUB"', '"orders=PUB"'), ("", "")]
    for number, (old, new) in enumerate(changes, 50):
        change_accounts(pair, tmp_path, ACCOUNTS.replace(old, new) + f"# {number}\n")
        await pair.receive(signed(RIGHT, pull(number)))
        pair.check()
    assert pair.fast.served_fast - before == 1


async def test_accounts_that_change_while_connected(pair: Pair, tmp_path: Path) -> None:
    await first_messages(pair)
    stamper = Stamper()
    changes = [
        ('"orders=PUB|SUB"', '"orders=SUB"'), ("rightSecret1", "otherSecret1"), ("rightKey1", "goneKey12"),
        ("10.9.9.*", "127.0.0.*"), ("admin: true}", "admin: false}"), ("", ""),
    ]  # fmt: skip
    for number, (before, after) in enumerate(changes, 10):
        change_accounts(pair, tmp_path, ACCOUNTS.replace(before, after) + f"# {number}\n")
        for account in (RIGHT, ADMIN, UNKNOWN):
            await pair.receive(signed(account, request(number), stamper))
        pair.check()
    assert 0 < pair.fast.served_fast < 18


async def test_what_is_refused_makes_no_room(tmp_path: Path) -> None:
    """A file of the log ends for a message that an account may send, and not before."""
    with pair_of_brokers(tmp_path, accounts=ACCOUNTS, store={"commit_log_file_bytes": 64 * 1024}) as pair:
        await first_messages(pair)
        stamper = Stamper()
        for number in range(10, 200):
            account = (RIGHT, LOW, WRONG)[number % 3]
            await pair.receive(signed(account, request(number, b"b" * (number * 331 % 9000)), stamper))
            assert pair.fast.broker.store.parts.log.position == pair.plain.broker.store.parts.log.position
        assert pair.fast.served_fast > 20
        pair.check()


async def test_cut_at_every_byte(pair: Pair) -> None:
    """A frame that says to be shorter than it was: header, fields or body end anywhere."""
    await first_messages(pair)
    for encoding in (JSON, ROCKETMQ):
        whole = signed(RIGHT, request(5, encoding=encoding), Stamper())
        for size in range(4, len(whole) - 3):
            await pair.receive(size.to_bytes(4) + whole[4 : 4 + size])
            if pair.fast.socket.is_over or pair.plain.socket.is_over:
                pair.connect()
    assert pair.fast.served_fast == 2
    pair.check()


async def test_unknown_accounts_are_hashed_for_and_refused(pair: Pair) -> None:
    """The time of a refusal must not tell which accounts exist: there is a key for them, and nothing passes with it."""
    await first_messages(pair)
    access = pair.fast.broker.access
    assert access is not None
    account, key, is_white, needs_stamp = access.account_named(pair.fast.connection, "nobodyKey")
    assert account is None and not is_white and needs_stamp
    send = request(10, AccessKey="nobodyKey")
    send.ext_fields[SIGNATURE] = b64encode(key.digest(signed_content(send.ext_fields), send.body)).decode()
    await pair.receive(send.encode())
    assert pair.fast.served_fast == 0 and access.denied["unknown_account"] == 1
    pair.check()


STAMP_TEXT = "1700000000000.0123456789abcdef.77.310"
NEAR_STAMPS = [
    *(STAMP_TEXT[:size] for size in range(len(STAMP_TEXT))),
    *(STAMP_TEXT[:at] + wrong + STAMP_TEXT[at + 1 :] for at in range(len(STAMP_TEXT)) for wrong in "xA./:"),
    STAMP_TEXT,
    STAMP_TEXT + "\u00e9",
    "1" + STAMP_TEXT,
    STAMP_TEXT.replace("77", "7" * 40),
]


async def test_a_stamp_under_another_name_is_found(pair: Pair) -> None:
    """What follows the access key decides; the last fields are long enough for a look beyond it to be wrong."""
    await first_messages(pair)
    for number, text in enumerate(NEAR_STAMPS):
        await pair.receive(signed(RIGHT, request(number, AccessKeyZ=text)))
    hidden = sum(HIDDEN_STAMP.match(text.encode() + b"producers") is not None for text in NEAR_STAMPS)
    assert pair.fast.served_fast == len(NEAR_STAMPS) - hidden and hidden > 5
    assert pair.fast.broker.access.denied["replayed"] == hidden  # type: ignore[union-attr]
    pair.check()


@st.composite
def requests_of_clients(draw: st.DrawFn) -> bytes:
    """Signed frames with a few bytes changed; lengths mostly stay."""
    stamper = Stamper()
    data = bytearray()
    for number in range(draw(st.integers(1, 4))):
        send = request(
            number,
            draw(st.binary(max_size=40)),
            code=draw(st.sampled_from([310, 320])),
            encoding=draw(st.sampled_from([JSON, ROCKETMQ])),
            flag=draw(st.sampled_from([0, 0, 2])),
            b=draw(st.sampled_from(["orders", "orders", "a", "payments", "other"])),
            z=draw(st.text(alphabet=st.sampled_from(list('ab\x01\u00e9\u4e2d\U0001f600"\\/\n')), max_size=8)),
        )
        asked = pull(
            number,
            draw(st.integers(-1, 12)),
            encoding=draw(st.sampled_from([JSON, ROCKETMQ])),
            topic=draw(st.sampled_from(["orders", "orders", "payments", "other"])),
            consumerGroup=draw(st.sampled_from(["readers", "others"])),
        )
        account, made = draw(st.sampled_from(EVERYBODY)), draw(st.sampled_from([stamper, None]))
        data += signed(account, draw(st.sampled_from([send, asked])), made)
    for _ in range(draw(st.integers(0, 2))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@bounded(30)
@given(st.lists(requests_of_clients(), min_size=1, max_size=4))
async def test_made_up_requests(tmp_path_factory: pytest.TempPathFactory, data: list[bytes]) -> None:
    with pair_of_brokers(tmp_path_factory.mktemp("pair"), accounts=ACCOUNTS) as pair:
        await readable_messages(pair)
        for part in [*data, *data]:  # again: the stamps are used up
            await pair.receive(part)
        pair.check()
