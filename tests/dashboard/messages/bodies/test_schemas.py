"""Bodies are decoded by the operator's schemas; what is wrong with a schema or a body is said, and harms nothing."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from dashboard.cluster.message_query import understand
from dashboard.messages.bodies import schemas
from dashboard.messages.bodies.avro import AvroDecoder
from dashboard.messages.bodies.body_view import BodyView, view_body
from dashboard.messages.bodies.protobuf import ProtobufDecoder
from dashboard.messages.bodies.schema_errors import NotOfSchema, SchemaError
from tests.bounded import bounded
from tests.dashboard.messages.bodies.examples import ORDER, SHOWN, avro_body, descriptors, message, payment_body

INDEX = """
[orders]
avro = "order.avsc"
[framed]
avro = "order.avsc"
framed = true
[payments]
protobuf = "shop.desc"
message = "shop.Payment"
[payments-framed]
protobuf = "shop.desc"
message = "shop.Payment"
framed = true
[outside]
avro = "../order.avsc"
[lost]
avro = "lost.avsc"
[other]
protobuf = "shop.desc"
message = "shop.Nothing"
[neither]
json = "x"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "topics.toml").write_text(INDEX)
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    (tmp_path / "shop.desc").write_bytes(descriptors().SerializeToString())
    config = dataclasses.replace(settings.APPLIANCE, body_schemas=str(tmp_path))
    monkeypatch.setattr(settings, "APPLIANCE", config)
    monkeypatch.setattr(schemas, "LOOK_AGAIN_S", 1e-9)  # each time
    return tmp_path


def view(topic: str, body: bytes) -> BodyView:
    return view_body(message(topic, body))


def test_a_body_is_shown_by_its_topics_schema_first(folder: Path) -> None:
    for topic, body in (("orders", avro_body()), ("framed", b"\0\0\0\0\7" + avro_body())):
        shown = view(topic, body)
        assert (shown.form, json.loads(shown.text), shown.note) == ("avro", SHOWN, None)
    for topic, body in (("payments", payment_body()), ("payments-framed", b"\0\0\0\0\7\0" + payment_body()),
                        ("payments-framed", b"\0\0\0\0\7\2\0" + payment_body())):  # fmt: skip
        shown = view(topic, body)
        assert (shown.form, json.loads(shown.text)) == ("protobuf", {"order_id": "17", "currency": "EUR"})
    assert "hex" in shown.forms and view("unknown", avro_body()).form != "avro"


def test_a_search_looks_inside_of_such_bodies(folder: Path) -> None:
    found = message("orders", avro_body())
    assert understand('$.lines[*].sku="a<b>"').matches(found) and understand("$.id>16").matches(found)
    assert not understand("$.id>17").matches(found)


@pytest.mark.parametrize(
    ("topic", "body", "why"),
    [
        ("orders", avro_body()[:-1], "it ends too early"),
        ("orders", avro_body() + b"rest", "4 B are left over"),
        ("orders", bytes(300_000), "Only bodies up to 256 KiB"),
        ("framed", avro_body(), "does not begin with a schema's number"),
        ("payments", b"\xff\xff", "does not fit the schema shop.desc"),
        ("payments", b"\x98\x06\x01", "Fields that are not in the schema: 1"),
        ("payments-framed", b"\0\0\0\0\7\xff\xff", "it ends too early"),
        ("payments-framed", b"\0\0\0\0\7\x7e", "does not begin with a schema's number"),
        ("outside", b"", "not a path"),
        ("lost", b"", "lost.avsc can't be read: No such file"),
        ("other", b"", "has no message “shop.Nothing”"),
        ("neither", b"", "[neither] needs avro or protobuf"),
    ],
)
def test_what_is_wrong_is_said_and_the_body_is_shown_as_it_is(folder: Path, topic: str, body: bytes, why: str) -> None:
    shown = view(topic, body)
    assert why in (shown.note or "") and "hex" in shown.forms


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "is not an Avro schema"),
        ('{"type":"array","items":"null"}', "values that take no bytes"),
        ('{"type":"array","items":{"type":"record","name":"E","fields":[]}}', "values that take no bytes"),
        ('{"type":"record","name":"N","fields":[{"name":"next","type":["null","N"]}]}', "N contains itself"),
        (json.dumps(["null", *({"type": "fixed", "name": f"f{n}", "size": n} for n in range(2100))]), "too large"),
        ("[" * 2000 + "]" * 2000, "avsc"),
    ],
)
def test_a_schema_that_a_body_could_grow_by_is_refused(schema: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        AvroDecoder("bad.avsc", schema.encode())


def test_descriptors_that_lack_an_import_or_are_none_are_refused() -> None:
    lacking = descriptors()
    lacking.file[0].dependency.append("elsewhere.proto")
    for content, why in (
        (b"\xff\xff", "protoc --descriptor_set_out"),
        (lacking.SerializeToString(), "--include_imports"),
    ):
        with pytest.raises(SchemaError, match=why):
            ProtobufDecoder("shop.desc", content, "shop.Payment")


def test_a_protobuf_body_that_is_too_deep_is_refused() -> None:
    body = b""
    for _ in range(150):
        length = len(body)
        size = bytes([length & 0x7F | 0x80, length >> 7]) if length > 127 else bytes([length])
        body = b"\x1a" + size + body
    with pytest.raises(NotOfSchema):
        ProtobufDecoder("shop.desc", descriptors().SerializeToString(), "shop.Payment").decode(body, framed=False)


def test_a_changed_file_counts_and_a_too_large_one_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert view("orders", avro_body()).form == "avro"
    (folder / "order.avsc").write_text('"int"')
    os.utime(folder / "order.avsc", ns=(1, 1))
    assert view("orders", b"\x22").text == "17"
    (folder / "order.avsc").write_bytes(bytes(schemas.FILE_BYTES_MAX + 1))
    assert "larger than 1 MiB" in (view("orders", b"\x22").note or "")
    (folder / "topics.toml").write_text("[")
    assert "topics.toml" in (view("orders", b"\x22").note or "")


AVRO = AvroDecoder("order.avsc", json.dumps(ORDER).encode())
PROTOBUF = ProtobufDecoder("shop.desc", descriptors().SerializeToString(), "shop.Payment")


@bounded(500)
@given(st.binary(max_size=400), st.integers(0, 30), st.booleans())
def test_any_bytes_are_decoded_or_refused(noise: bytes, kept: int, framed: bool) -> None:
    for decoder, body in ((AVRO, avro_body()), (PROTOBUF, payment_body())):
        try:
            decoder.decode(body[:kept] + noise, framed=framed)  # type: ignore[attr-defined]
        except NotOfSchema as exc:
            assert str(exc)
