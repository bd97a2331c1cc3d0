"""A cluster with something to find for every request code, and a consumer that says yes to everything it is asked."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.properties import encode_properties
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, TopicConfig
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import JSON, RemotingCommand
from tests.appliance.code_examples import CLIENT, GROUP, PRODUCERS, SEND_SHORT, TOPIC, Example
from tests.appliance.peer import Peer
from tests.harness import ServingCluster, serving
from tests.waiting import WITHIN_S

ANSWER_S_MAX = WITHIN_S  # RocketMQ's clients wait 3 s, but this process may be stopped for longer
QUEUES = 4


class Scene:
    """A cluster with something to find: a topic with messages, a group with a consumer that answers, a transaction."""

    def __init__(self, cluster: ServingCluster, folder: Path, consumer: Peer) -> None:
        self.cluster = cluster
        self.folder = folder
        self.consumer = consumer
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
        """What a right request may use up, or time: made again before each."""
        self.beat()
        broker = self.cluster.broker
        for topic in (TOPIC, "CodesGone"):
            broker.topics.update(TopicConfig(topic, QUEUES, QUEUES))
        for group in (GROUP, "CG_gone", "CG_pop"):
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

    def beat(self) -> None:
        """The broker forgets who is silent for two minutes, and on a busy machine a module takes longer."""
        data = HeartbeatData(
            CLIENT,
            [ProducerData(PRODUCERS)],
            [ConsumerData(GROUP, subscription_data_set=[SubscriptionData(TOPIC, sub_version=1)])],
        )
        self.consumer.write(RemotingCommand.request(RequestCode.HEART_BEAT, body=data.to_json()).encode())

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
        known = re.compile(r"audit\.jsonl(\.1)?|store(/.*)?|kvConfig\.json(\.bak|\.tmp)?")
        names = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*"))
        return [name for name in names if not known.fullmatch(name) or ".." in name or not name.isascii()]


@contextlib.asynccontextmanager
async def open_scene(folder: Path) -> AsyncIterator[Scene]:
    """Serve the scene from `folder`; at the end no file may lie where no file belongs."""
    gc.collect()  # what an earlier module left behind complains when it is collected; here a complaint is a failure
    async with serving(folder) as cluster:
        consumer = await Peer.connect(cluster.broker.port)
        scene = Scene(cluster, folder, consumer)
        scene.beat()
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
