"""Every request code with right, missing, wrong-typed and hostile fields and bodies, in both header encodings.

After whatever was sent: an answer came, the connection lives, no handler failed, no file appeared outside of the store,
and the right request is answered as before. SYSTEM_ERROR is only where the table has the original's own words for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from gantrymq.remoting import fastjson
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from tests.appliance.code_examples import BROKER, NAMESRV, TOPIC, UNSUPPORTED, Example
from tests.appliance.code_scene import Scene, ask_all
from tests.appliance.peer import Peer

pytestmark = pytest.mark.asyncio(loop_scope="module")

BINARY_CODE_MAX = 0x7FFF  # RocketMQ's binary header has two bytes for the code: POP's are sent in JSON
NO_NUMBERS = ("abc", "1.5", "", "9223372036854775808", "-9223372036854775809", "NaN", "yes", "9" * 10_000, "0x10")
FAR_NUMBERS = ("-1", "2147483647", "2147483648", "-2147483649", "9223372036854775807", "-9223372036854775808")
NAMES = (
    "", " ", ".", "..", "/", "../../../tmp/gantry", "..\\..\\x", "%2e%2e%2f", "%RETRY%../x", "a\0b", "主题",
    "\u202eabc",
    "x" * 10_000, "a\x01b", "a\x02TRAN_MSG\x01true", "a@b", "a b", "${jndi:ldap://x}", "a\nb=c", "null", "true", "-1",
)  # fmt: skip
BODIES = (
    b"", b"{", b"[", b"}", b"null", b"[]", b"{}", b"0", b"-1", b'"text"', b"true", b"\xff\xfe\x00", b"\0" * 100,
    b"[" * 10_000, b'{"a":' * 10_000, b"{" * 10_000, b" " * (8 << 20), b'{"a":1}', b"{a:1}", b"{1:2}",
    b'{{"brokerName":"b","queueId":0,"topic":"t"}:1}', b'{{"brokerName":"b"}:1}', b'{"a":1e999}', b'{"\\ud800":1}',
    b"=", b"a=b", b"longPollingEnable=maybe", b"x\x9c\x03\x00\x00\x00\x00\x01",
)  # fmt: skip
MEMBERS: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 1 << 62, 1e30, "", "x", "../x", "x" * 10_000, [], [[]], [1], ["x"], [None], [{}], {},
    {"a": 1}, {"a": {"a": {}}},
)  # fmt: skip


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No request makes anything fail here: not a handler, not a task, not a callback of the loop."""
    with caplog.at_level(logging.ERROR):
        yield
    failed = [f"{record.message}: {record.exc_info}" for record in caplog.records if record.levelno >= logging.ERROR]
    assert not failed, failed[:3]


def check_right(example: Example, answer: RemotingCommand) -> None:
    where = f"{example.code}: {answer.code} {answer.remark} {answer.ext_fields} {answer.body[:200]!r}"
    assert answer.code in example.answers, where
    if answer.code == ResponseCode.SUCCESS:
        assert answer.ext_fields.keys() >= set(example.answer_fields), where
        if example.answer_body:
            document = fastjson.loads(answer.body)
            assert document.keys() >= set(example.answer_body), where
    elif answer.code == ResponseCode.SYSTEM_ERROR:
        assert answer.remark.startswith(example.wording), where


def check_refusal(example: Example, request: RemotingCommand, answer: RemotingCommand) -> None:
    """Whatever is said to nonsense: never "my fault", but in the original's own words for its flows."""
    if answer.code == ResponseCode.SYSTEM_ERROR:
        assert answer.remark is not None
        assert answer.remark.startswith(example.wording), told(request, answer)
    if answer.code == ResponseCode.INVALID_PARAMETER:
        assert answer.remark, told(request, answer)
    assert len(answer.remark or "") < 4096, told(request, answer)


def told(request: RemotingCommand, answer: RemotingCommand) -> str:
    fields = {name: value[:60] for name, value in request.ext_fields.items()}
    return f"{request.code} {fields} {request.body[:80]!r} -> {answer.code} {(answer.remark or '')[:300]}"


def examples(*roles: str) -> Any:
    rows = [example for example in BROKER + NAMESRV if example.role in roles]
    return pytest.mark.parametrize(
        "example", rows, ids=[f"{int(row.code)}-{RequestCode(row.code).name}" for row in rows]
    )


ALL = examples("broker", "namesrv")
IN_BOTH_HEADERS = pytest.mark.parametrize(
    ("example", "serialize_type"),
    [
        pytest.param(row, kind, id=f"{int(row.code)}-{RequestCode(row.code).name}-{name}")
        for row in BROKER + NAMESRV
        for kind, name in ((JSON, "json"), (ROCKETMQ, "rocketmq"))
        if kind == JSON or row.code <= BINARY_CODE_MAX
    ],
)


@IN_BOTH_HEADERS
async def test_a_right_request_is_answered_right(scene: Scene, example: Example, serialize_type: int) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        ((_, answer),) = await ask_all(peer, [scene.request(example, serialize_type)])
        check_right(example, answer)


@IN_BOTH_HEADERS
async def test_a_missing_field_is_named(scene: Scene, example: Example, serialize_type: int) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        for name, item in example.fields.items():
            ((request, answer),) = await ask_all(peer, [scene.request(example, serialize_type, **{name: None})])
            check_refusal(example, request, answer)
            if item.is_required and not item.is_lenient and set(example.answers) == {0}:
                assert answer.code == ResponseCode.INVALID_PARAMETER, told(request, answer)
                assert re.search(rf"\b{name}\b", answer.remark or ""), told(request, answer)
        await scene.prepare(sender)
        await still_right(scene, example, peer)


@IN_BOTH_HEADERS
async def test_a_wrong_typed_field_is_named(scene: Scene, example: Example, serialize_type: int) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        for name, item in example.fields.items():
            wrong = [scene.request(example, serialize_type, **{name: value}) for value in NO_NUMBERS + FAR_NUMBERS]
            for request, answer in await ask_all(peer, wrong):
                check_refusal(example, request, answer)
                value = request.ext_fields[name]
                is_absent = not value and (serialize_type == ROCKETMQ)
                if item.is_number and value in NO_NUMBERS and not is_absent and set(example.answers) == {0}:
                    assert answer.code == ResponseCode.INVALID_PARAMETER, told(request, answer)
                    assert name in (answer.remark or ""), told(request, answer)
        await scene.prepare(sender)
        await still_right(scene, example, peer)


@ALL
async def test_hostile_fields_and_bodies_do_no_harm(scene: Scene, example: Example) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        for name in example.fields:
            hostile = [scene.request(example, **{name: value}) for value in NAMES]
            for request, answer in await ask_all(peer, hostile):
                check_refusal(example, request, answer)
        for body in [*BODIES, *damaged(example)]:
            request = scene.request(example)
            request.body = body
            ((_, answer),) = await ask_all(peer, [request])
            check_refusal(example, request, answer)
            if example.body_reader == "json" and example.needs_body and not body.strip():
                assert answer.code == ResponseCode.INVALID_PARAMETER, told(request, answer)
        await scene.prepare(sender)
        await still_right(scene, example, peer)
    assert not scene.strange_files()


@ALL
async def test_one_way_requests_are_never_answered(scene: Scene, example: Example) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        for name in [None, *example.fields]:
            for value in (None, "../x", "-1", "abc"):
                changes = {} if name is None else {name: value}
                peer.write(scene.request(example, **changes).mark_oneway().encode())
        request = scene.request(example).mark_oneway()
        request.body = b"{"
        peer.write(request.encode())
        await scene.prepare(sender)
        await still_right(scene, example, peer)


@pytest.mark.parametrize("role", ["broker", "namesrv"])
async def test_codes_that_nobody_serves_are_not_supported(scene: Scene, role: str) -> None:
    example = next(row for row in BROKER + NAMESRV if row.role == role)
    async with scene.peer(example) as peer:
        codes = set(UNSUPPORTED)
        requests = [RemotingCommand.request(code, {"topic": TOPIC}, b"{") for code in sorted(codes)]
        for request, answer in await ask_all(peer, requests):
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED, told(request, answer)
            assert answer.remark == f" request type {request.code} not supported"


async def test_the_table_is_complete() -> None:
    """Every code that has a handler has a row, and the other way round."""
    from appliance.broker.processors.table import TABLE as OF_BROKER
    from appliance.namesrv.table import TABLE as OF_NAMESRV

    assert {int(row.code) for row in BROKER} == {int(row.code) for row in OF_BROKER}
    assert {int(row.code) for row in NAMESRV} == {int(row.code) for row in OF_NAMESRV}
    known = {int(row.code) for row in BROKER + NAMESRV} | set(UNSUPPORTED)
    assert {int(code) for code in RequestCode} <= known


def damaged(example: Example) -> Iterator[bytes]:
    """The right body cut, and with each of its members made something else."""
    body = example.body
    if not body:
        return
    yield body[: len(body) // 2]
    yield body[:-1]
    yield body + body
    if example.body_reader != "json":
        return
    for document in variants(fastjson.loads(body)):
        yield fastjson.dumps(document)


def variants(document: Any, depth: int = 0) -> Iterator[Any]:
    """The document with one member, at any depth, replaced by each of MEMBERS."""
    keys = document.keys() if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for key in keys:
        for value in MEMBERS if depth < 2 else MEMBERS[:12]:
            yield with_member(document, key, value)
        for inner in variants(document[key], depth + 1):
            yield with_member(document, key, inner)


def with_member(document: Any, key: Any, value: Any) -> Any:
    changed = document.copy()
    changed[key] = value
    return changed


async def still_right(scene: Scene, example: Example, peer: Peer) -> None:
    """The connection lives, and the right request is answered as ever."""
    ((_, answer),) = await ask_all(peer, [scene.request(example)])
    check_right(example, answer)
