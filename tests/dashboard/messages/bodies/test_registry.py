"""Bodies decoded by the schemas of a registry: a small server of this module's own answers as Confluent's does."""

from __future__ import annotations

import base64
import dataclasses
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.utils import translation

from dashboard.cluster.message_query import understand
from dashboard.messages.bodies import registry, schemas
from dashboard.messages.bodies.body_view import view_body
from dashboard.messages.bodies.registered import learn_schemas
from tests.dashboard.messages.bodies.examples import ORDER, SHOWN, avro_body, descriptors, message, payment_body
from tests.waiting import WITHIN_S

NAMED = {"type": "record", "name": "Outer", "fields": [{"name": "order", "type": "Order"}]}
FRAME_7, FRAME_8, FRAME_9, FRAME_10 = (b"\0\0\0\0" + bytes([number]) for number in (7, 8, 9, 10))


def _file() -> str:
    return base64.b64encode(descriptors().file[0].SerializeToString()).decode()


ANSWERS: dict[str, Any] = {
    "/schemas/ids/7": {"schema": json.dumps(ORDER)},
    "/subjects/orders-value/versions/latest": {"id": 7, "schema": json.dumps(ORDER)},
    "/schemas/ids/8": {"schemaType": "PROTOBUF", "schema": "message Payment {}"},
    "/schemas/ids/8?format=serialized": {"schemaType": "PROTOBUF", "schema": _file()},
    "/schemas/ids/9": {"schemaType": "JSON", "schema": "{}"},
    "/schemas/ids/10": {
        "schema": json.dumps(NAMED), "references": [{"name": "Order", "subject": "orders-value", "version": 1}]
    },
    "/subjects/orders-value/versions/1": {"schema": json.dumps(ORDER)},
    "/schemas/ids/12": {"schema": "{", "schemaType": "AVRO"},
    "/schemas/ids/13": ["no object"],
}  # fmt: skip


class Answering(BaseHTTPRequestHandler):
    """What is known, 404 for the rest; 11 leads elsewhere, 14 never ends."""

    asked: list[tuple[str, str]]
    ends: threading.Event

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        if self.path == "/schemas/ids/14":
            self.ends.wait(WITHIN_S)
        body = json.dumps(ANSWERS.get(self.path, {"error_code": 40403})).encode()
        self.send_response(302 if self.path == "/schemas/ids/11" else 200 if self.path in ANSWERS else 404)
        self.send_header("Location", "/schemas/ids/7")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on the test's output."""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """The paths that the registry was asked for, and with which account."""
    found: list[tuple[str, str]] = []
    ends = threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Server", (Answering,), {"asked": found, "ends": ends}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    (tmp_path / "topics.toml").write_text('[plain]\nsubject = "orders-value"\n')
    (tmp_path / "secret").write_text("reader:s3cret\n")
    config = dataclasses.replace(
        settings.APPLIANCE,
        body_schema_registry=f"http://127.0.0.1:{server.server_port}",
        body_schema_registry_secret_file=str(tmp_path / "secret"),
        body_schemas=str(tmp_path),
    )
    monkeypatch.setattr(settings, "APPLIANCE", config)
    monkeypatch.setattr(schemas, "LOOK_AGAIN_S", 1e-9)
    try:
        yield found
    finally:
        ends.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("topic", "body", "form", "value"),
    [
        ("any", FRAME_7 + avro_body(), "avro", SHOWN),
        ("plain", avro_body(), "avro", SHOWN),
        ("any", FRAME_8 + b"\0" + payment_body(), "protobuf", {"order_id": "17", "currency": "EUR"}),
        ("any", FRAME_9 + b'{"id": 3}', "json-schema", {"id": 3}),
        ("any", FRAME_10 + avro_body(), "avro", {"order": SHOWN}),
    ],
)
async def test_a_body_is_shown_by_the_schema_that_its_number_or_its_topics_subject_names(
    asked: list[tuple[str, str]], topic: str, body: bytes, form: str, value: Any
) -> None:
    for _ in range(3):
        await learn_schemas([(topic, body)])
        shown = view_body(message(topic, body))
        assert (shown.form, json.loads(shown.text), shown.note) == (form, value, None)
    assert len(asked) == len(set(asked)), "what is known is not asked again"
    account = base64.b64encode(b"reader:s3cret").decode()
    assert {header for _, header in asked} == {f"Basic {account}"}


async def test_a_search_looks_inside_once_the_schemas_are_known(asked: list[tuple[str, str]]) -> None:
    found = message("any", FRAME_7 + avro_body())
    condition = understand("$.id=17")
    assert not condition.matches(found)
    await learn_schemas([(found.topic, bytes(found.body))])
    assert condition.matches(found)


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (1, "answers 404 for /schemas/ids/1"), (11, "answers 302 for /schemas/ids/11"), (12, "is not an Avro schema"),
        (13, "answer can't be read"), (14, "does not answer in time"),
    ],
)  # fmt: skip
async def test_what_the_registry_does_not_say_is_said_and_asked_once(
    asked: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    if number == 14:
        monkeypatch.setattr(registry, "LOOK_TIMEOUT_S", 0.2)
    body = b"\0\0\0\0" + bytes([number]) + avro_body()
    for _ in range(2):
        await learn_schemas([("any", body)])
        shown = view_body(message("any", body))
        assert why in (shown.note or "") and "hex" in shown.forms
    assert len(asked) == 1, "neither again, nor where it leads to"
    with translation.override("zh-hans"):
        assert why not in str(view_body(message("any", body)).note), "what was noted for all is said in each language"


async def test_one_look_asks_for_a_few_schemas_only(asked: list[tuple[str, str]]) -> None:
    await learn_schemas([("any", number.to_bytes(5, "big") + b"x") for number in range(100, 200)])
    assert len(asked) == registry.LOOK_MAX


async def test_a_body_without_a_number_asks_nothing(asked: list[tuple[str, str]]) -> None:
    await learn_schemas([("any", b'{"id": 3}'), ("any", b"\0\0"), ("any", bytes(300_000))])
    assert asked == []
