"""Bodies for people: found out, unpacked within bounds, folded; and never trusted."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import tracemalloc
import zlib
from typing import Any

import msgspec
import pytest

from dashboard.messages.bodies import body_view
from dashboard.messages.bodies.body_view import (
    DEPTH_MAX,
    NODES_MAX,
    PREVIEW_DECODED_BYTES_MAX,
    SHOWN_CHARS_MAX,
    fold,
    preview,
    view_body,
)
from dashboard.messages.bodies.unpack import MESSAGEPACK_BYTES_MAX, UNPACKED_BYTES_MAX, messagepack, unpack
from dashboard.messages.message_views import BODY_BYTES_MAX, python_of
from gantrymq.message.compression import compress_body
from gantrymq.message.model import Message, MessageExt

ORDER = {"id": 17, "lines": [{"sku": "a<b>"}, {}], "note": "Zoë", "paid": True, "none": None}


def message(body: bytes, **properties: str) -> MessageExt:
    host = ("127.0.0.1", 1)
    return MessageExt("t", body, 0, properties, 0, 0, 0, 0, 0, 0, host, 0, host, 0, 0, 0, "broker-a")


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


PACKED = {"gzip": gzip.compress, "zlib": zlib.compress, "zstd": lambda body: compress_body(body, "zstd", 3)}


@pytest.mark.parametrize("name", PACKED)
def test_what_a_producer_packed_is_unpacked_and_said(name: str) -> None:
    body = json.dumps(ORDER).encode()
    packed = PACKED[name](body)
    assert unpack(packed) == (name, body)
    view = view_body(message(packed))
    assert (view.form, json.loads(view.text), view.size_bytes) == ("json", ORDER, len(packed))
    assert view.note is not None and name in view.note
    assert view_body(message(packed), "stored").text.startswith("00000000  " + packed[:8].hex(" "))
    assert unpack(packed[:-5]) is None, "torn: shown as it is stored"


@pytest.mark.parametrize("name", PACKED)
def test_a_body_that_would_fill_the_memory_stays_packed(name: str) -> None:
    bomb = PACKED[name](bytes(UNPACKED_BYTES_MAX + 1))
    assert unpack(bomb) is None
    assert view_body(message(bomb)).form == "hex"


def test_messagepack_is_shown_as_what_it_holds() -> None:
    packed = msgspec.msgpack.encode(ORDER | {"bytes": b"\x00\xff"})
    view = view_body(message(packed))
    assert (view.form, json.loads(view.text)) == ("messagepack", ORDER | {"bytes": "AP8="})
    assert view.tree is not None
    for wrong in (b"", b"\xdd\xff\xff\xff\xff", b"\x91" * 5000, b"\x81\xa1\xff\x01", packed[:-1], packed + b"\x00"):
        assert messagepack(wrong) is None, wrong[:8]
    assert view_body(message(b"\x91" * 5000)).form == "hex"


def test_messagepack_that_is_too_long_to_decode_says_so() -> None:
    long = msgspec.msgpack.encode([None] * MESSAGEPACK_BYTES_MAX)
    view = view_body(message(long))
    assert (view.form, view.note) == ("hex", "MessagePack of more than 256 KiB, which is not decoded here")
    packed = view_body(message(gzip.compress(long))).note
    assert packed is not None and packed.startswith("gzip, unpacked") and packed.endswith("not decoded here")
    for other in (long[:-1], long + b"\x00", b"\x91" * len(long), b"\xff" + long):
        assert view_body(message(other)).note is None, "bytes of another kind"


def test_few_bytes_deep_within_arrays_fill_no_memory_with_indents() -> None:
    deep, values = 300, 20_000
    body = b"\x91" * deep + b"\xdc" + values.to_bytes(2, "big") + b"\xc0" * values
    tracemalloc.start()
    view = view_body(message(body))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (view.form, len(view.text), view.cut) == ("messagepack", SHOWN_CHARS_MAX, True)
    assert most < 8 * SHOWN_CHARS_MAX < 2 * deep * values, most
    assert view_body(message(msgspec.msgpack.encode([None] * MESSAGEPACK_BYTES_MAX))).form == "hex"


def test_forms_are_of_the_same_bytes() -> None:
    body = b'{"a": "\xc3\xab"}'
    assert view_body(message(body)).forms == ("json", "text", "hex", "base64")
    assert base64.b64decode(view_body(message(body), "base64").text) == body
    assert view_body(message(body), "text").text == '{"a": "ë"}'


@pytest.mark.parametrize("body", [b'["\\ud800"]', b"[" * 900 + b"]" * 900, b'{"a": ' * 900 + b"1" + b"}" * 900])
def test_json_that_can_not_be_shown_is_a_text(body: bytes) -> None:
    view = view_body(message(body))
    view.text.encode()
    assert view.tree is None


@pytest.mark.parametrize("value", [ORDER, [], {}, [1], [[[]]], {"k": {"<script>": "</details>"}}])
def test_what_folds_reads_as_the_pretty_print(value: Any) -> None:
    markup = fold(value)
    assert markup is not None
    assert json.loads(text_of(markup)) == value
    assert text_of(markup).rstrip("\n") == json.dumps(value, indent=2, ensure_ascii=False)
    assert "<script>" not in markup and markup.count("</details>") == markup.count("<details")


def test_too_much_or_too_deep_does_not_fold() -> None:
    deep: Any = 1
    for _ in range(DEPTH_MAX + 2):
        deep = [deep]
    assert fold(deep) is None
    assert fold(list(range(NODES_MAX + 1))) is None
    assert fold("text") is None


def test_a_message_is_python_that_makes_it_again() -> None:
    body = b'it\'s "quoted"\n\xff'
    program = python_of(message(body, TAGS="a'b", KEYS="k1 k2", UNIQ_KEY="X", DELAY="3", region="eu"))
    assert program is not None
    names: dict[str, Any] = {}
    exec(program, names)
    made = names["message"]
    assert isinstance(made, Message)
    assert (made.topic, made.body, made.tags, made.keys) == ("t", body, "a'b", ["k1", "k2"])
    assert made.properties["region"] == "eu" and "UNIQ_KEY" not in program and "DELAY" not in program
    assert python_of(message(b"x" * (BODY_BYTES_MAX + 1))) is None


@pytest.mark.parametrize("name", PACKED)
def test_a_row_says_what_a_packed_body_holds(name: str) -> None:
    line = json.dumps(ORDER, ensure_ascii=False)
    assert preview(message(PACKED[name](json.dumps(ORDER).encode()))).startswith('{"id": 17, "lines"')
    assert preview(message(PACKED[name]("Bon voyage,\n Zoë".encode()))) == "Bon voyage, Zoë"
    assert preview(message(PACKED[name](msgspec.msgpack.encode(ORDER)))) == line
    bomb = PACKED[name](bytes(PREVIEW_DECODED_BYTES_MAX + 1))
    assert preview(message(bomb)) == bomb[:24].hex(" "), "unpacks to more than a row needs"
    for much in (json.dumps(list(range(40_000))).encode(), msgspec.msgpack.encode([None] * 1_000_000)):
        bomb = PACKED[name](much)
        assert len(much) > PREVIEW_DECODED_BYTES_MAX
        assert preview(message(bomb)) == bomb[:24].hex(" "), "nor is it unpacked after all to be decoded"
    twice = PACKED[name](PACKED[name](json.dumps(ORDER).encode()))
    assert preview(message(twice)) == twice[:24].hex(" ")


def test_a_row_says_what_messagepack_holds_and_else_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert preview(message(msgspec.msgpack.encode({"kind": "mail"}))) == '{"kind": "mail"}'
    assert preview(message(b"\x00\x01\xff")) == "00 01 ff"
    with monkeypatch.context() as patch:
        patch.setattr(body_view, "_pretty", None)  # a pretty print of some of them takes as long as a page of rows
        for body in (many := msgspec.msgpack.encode([None] * (PREVIEW_DECODED_BYTES_MAX - 8)), gzip.compress(many)):
            assert preview(message(body)) == "[" + "null, " * 19 + "null,…"
    long = msgspec.msgpack.encode({"kind": "m" * PREVIEW_DECODED_BYTES_MAX})
    assert preview(message(long)) == long[:24].hex(" ")
