"""Every request code with right, missing, wrong-typed and hostile fields and bodies, in both header encodings.

After whatever was sent: an answer came, the connection lives, no handler failed, no file appeared outside of the store,
and the right request is answered as before. SYSTEM_ERROR is only where the table has the original's own words for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.properties import encode_properties
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
    SubscriptionGroupConfig,
    TopicConfig,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import JSON, ROCKETMQ, RemotingCommand
from tests.appliance.code_examples import (
    BROKER,
    CLIENT,
    GROUP,
    NAMESRV,
    PRODUCERS,
    SEND_SHORT,
    TOPIC,
    UNSUPPORTED,
    Example,
)
from tests.appliance.peer import Peer
from tests.harness import ServingCluster, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWER_S_MAX = 20.0  # a busy machine; RocketMQ's clients wait 3
QUEUES = 4

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


class Scene:
    """A cluster with something to find: a topic with messages, a group with a consumer that answers, a transaction."""

    def __init__(self, cluster: ServingCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.values: dict[str, str] = {}

    def port(self, example: Example) -> int:
        return self.cluster.broker.port if example.role == "broker" else self.cluster.namesrv.port

    @contextlib.asynccontextmanager
    async def peer(self, example: Example) -> AsyncIterator[Peer]:
        peer = await Peer.connect(self.port(example))
        try:
            yield peer
        finally:
            await peer.close()

    async def prepare(self, peer: Peer) -> None:
        """What a right request may use up: made again before each."""
        broker = self.cluster.broker
        for topic in (TOPIC, "CodesGone"):
            broker.topics.update(TopicConfig(topic, QUEUES, QUEUES))
        for group in (GROUP, "CG_gone"):
            broker.groups.update(SubscriptionGroupConfig(group))
        broker.offsets.commit(GROUP, TOPIC, 0, 1)
        for queue_id in range(1, QUEUES):
            broker.offsets.commit(GROUP, TOPIC, queue_id, 0)
        stored = await self.send(peer, "KEYS", "k1")
        self.values["message_id"] = stored
        self.values["offset"] = str(decode_offset_message_id(stored)[2])
        half = await self.send(peer, "TRAN_MSG", "true", "PGROUP", PRODUCERS)
        self.values["half_message_id"] = half
        self.values["half_offset"] = str(decode_offset_message_id(half)[2])
        namesrv = self.cluster.namesrv
        namesrv.kv_config.put("NS", "K", "V")
        deadline = time.monotonic() + ANSWER_S_MAX
        while namesrv.routes.pickup_topic_route(TOPIC) is None:  # brokers tell it of new topics in their own time
            assert time.monotonic() < deadline, f"no route of {TOPIC}; registered: {broker.outer_api.registered}"
            await asyncio.sleep(0.01)

    async def send(self, peer: Peer, *pairs: str) -> str:
        properties = encode_properties(dict(zip(pairs[::2], pairs[1::2], strict=True)))
        fields = {name: item.value for name, item in SEND_SHORT.items()} | {"i": properties}
        answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")
        assert answer.code == 0, answer.remark
        if "TRAN_MSG" in pairs:
            self.values["half_queue_offset"] = answer.ext_fields["queueOffset"]
        return answer.ext_fields["msgId"]

    def request(self, example: Example, serialize_type: int = JSON, **changes: str | None) -> RemotingCommand:
        """The right request, with some fields changed or, where None, left out."""
        fields = {name: self._filled(item.value) for name, item in example.fields.items()} | changes
        kept = {name: value for name, value in fields.items() if value is not None}
        return RemotingCommand.request(example.code, kept, example.body, serialize_type=serialize_type)

    def _filled(self, value: str) -> str:
        return self.values[value[1:-1]] if value[:1] == "{" and value[1:-1] in self.values else value

    def strange_files(self) -> list[str]:
        """Names of files that only a trick can have made."""
        known = re.compile(r"store(/.*)?|kvConfig\.json(\.bak|\.tmp)?")
        names = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*"))
        return [name for name in names if not known.fullmatch(name) or ".." in name or not name.isascii()]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder = tmp_path_factory.mktemp("codes")
    async with serving(folder) as cluster:
        scene = Scene(cluster, folder)
        consumer = await Peer.connect(cluster.broker.port)
        beat = HeartbeatData(
            CLIENT,
            [ProducerData(PRODUCERS)],
            [ConsumerData(GROUP, subscription_data_set=[SubscriptionData(TOPIC, sub_version=1)])],
        )
        consumer.write(RemotingCommand.request(RequestCode.HEART_BEAT, body=beat.to_json()).encode())
        answering = asyncio.create_task(answer_pushes(consumer))
        yield scene
        answering.cancel()
        await consumer.close()
    assert not scene.strange_files()


async def answer_pushes(consumer: Peer) -> None:
    """A consumer that says yes to everything it is asked."""
    while True:
        try:
            pushed = await consumer.read()
        except TimeoutError:
            continue
        if not pushed.is_response and not pushed.is_oneway:
            consumer.write(pushed.reply(body=b'{"messageQueueTable":{},"properties":{}}').encode())


@pytest.fixture(autouse=True)
def quiet_log(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No request makes anything fail here: not a handler, not a task, not a callback of the loop."""
    with caplog.at_level(logging.ERROR):
        yield
    failed = [f"{record.message}: {record.exc_info}" for record in caplog.records if record.levelno >= logging.ERROR]
    assert not failed, failed[:3]


async def ask_all(peer: Peer, requests: Iterable[RemotingCommand]) -> list[tuple[RemotingCommand, RemotingCommand]]:
    """Send all at once; each with its answer."""
    asked = {request.opaque: request for request in requests}
    answers: dict[int, RemotingCommand] = {}
    for request in asked.values():
        peer.write(request.encode())
    async with asyncio.timeout(ANSWER_S_MAX):
        while len(answers) < len(asked):
            answer = await peer.read()
            if answer.is_response:
                assert answer.opaque in asked
                answers[answer.opaque] = answer
    return [(request, answers[opaque]) for opaque, request in asked.items()]


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


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ], ids=["json", "rocketmq"])
@ALL
async def test_a_right_request_is_answered_right(scene: Scene, example: Example, serialize_type: int) -> None:
    async with scene.peer(example) as peer, scene.peer(BROKER[0]) as sender:
        await scene.prepare(sender)
        ((_, answer),) = await ask_all(peer, [scene.request(example, serialize_type)])
        check_right(example, answer)


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ], ids=["json", "rocketmq"])
@ALL
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


@pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ], ids=["json", "rocketmq"])
@ALL
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
        requests = [RemotingCommand.request(code, {"topic": TOPIC}, b"{") for code in UNSUPPORTED]
        for request, answer in await ask_all(peer, requests):
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED, told(request, answer)
            assert answer.remark == f" request type {request.code} not supported"


async def test_the_table_is_complete() -> None:
    """Every code that has a handler has a row, and the other way round."""
    from appliance.broker.processors import HANDLERS as OF_BROKER
    from appliance.namesrv.processors import HANDLERS as OF_NAMESRV

    assert {int(row.code) for row in BROKER} == set(map(int, OF_BROKER))
    assert {int(row.code) for row in NAMESRV} == set(map(int, OF_NAMESRV))
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
