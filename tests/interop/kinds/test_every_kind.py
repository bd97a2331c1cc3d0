"""Every kind of message in every direction, at our broker and at Apache's 4.9.7.

Each row of `table.py`: Python to Python, Java to Python and Python to Java. Java's readers begin when the broker does,
and its senders when a test says so: one process of Java for each broker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from appliance.bench import rpc
from appliance.bench.peer import Peer
from gantrymq import AdminClient
from tests.gantrymq.client.peers import running_peer
from tests.gantrymq.client.seen import until
from tests.interop.clients import ClientProgram, JavaClient
from tests.interop.kinds.scene import Scene
from tests.interop.kinds.table import KINDS

PROPERTIES = {
    "enablePropertyFilter": "true",
    "traceTopicEnable": "true",
    "transactionCheckInterval": "500",
    "transactionTimeOut": "500",
    "transactionCheckMax": "1000",
}
JAVA_PROPERTIES = {"rocketmq.client.rebalance.waitInterval": 500}
FROM_JAVA = "java to python"
WAYS = ("python to python", FROM_JAVA, "python to java")
QUEUES = 4


@dataclass
class Stage:
    """A running broker with a topic for each kind and way, and Java's program beside it."""

    peer: Peer
    java: ClientProgram
    suffix: str


def topic_of(kind: str, way: str, suffix: str) -> str:
    """What crosses from one client to the other is named after its sender, as in java/Kinds.java."""
    sender = "own" if way == "python to python" else way.split()[0]
    return f"kind-{kind.replace(', ', '-')}-{sender}-{suffix}"


@pytest.fixture(scope="module", params=["gantry", "apache"])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java: JavaClient
) -> Iterator[Stage]:
    suffix = str(time.monotonic_ns())
    with running_peer(request.param, tmp_path_factory.mktemp(request.param), **PROPERTIES) as peer:
        for kind in KINDS:
            for way in WAYS:
                space = "space%" if kind == "namespace" else ""
                rpc.create_topic(peer.broker_address, space + topic_of(kind, way, suffix), QUEUES)
        arguments = ("Kinds", peer.namesrv_address, suffix, 1, "-", "-")
        with java.run(*arguments, java_properties=JAVA_PROPERTIES) as program:
            program.wait_started()
            yield Stage(peer, program, suffix)


def test_java_has_every_kind(stage: Stage) -> None:
    told = {word: {line[0] for line in stage.java.lines(word)} for word in ("READS", "SENDS")}
    assert told["READS"] == set(KINDS)
    assert told["SENDS"] == {name for name, kind in KINDS.items() if not kind.not_from_java}


CASES = [(name, way) for name, kind in KINDS.items() for way in WAYS if way != FROM_JAVA or not kind.not_from_java]


@pytest.mark.parametrize(("name", "way"), CASES)
async def test_what_is_sent_is_read(stage: Stage, tmp_path: Path, name: str, way: str) -> None:
    kind = KINDS[name]
    async with AsyncExitStack() as stack:
        admin = await stack.enter_async_context(AdminClient(stage.peer.namesrv_address))
        scene = Scene(stage.peer, name, topic_of(name, way, stage.suffix), admin, stack, tmp_path)
        if way == "python to java":
            scene.program = stage.java
        else:
            await stack.enter_async_context(kind.read(scene))
        if way == FROM_JAVA:
            await asyncio.to_thread(_sent_by_java, stage.java, name)
        else:
            await kind.send(scene)
        await until(lambda: len(scene.bodies) >= len(kind.bodies))
        assert tuple(scene.bodies) == kind.bodies
        if kind.check is not None:
            await kind.check(scene)


def _sent_by_java(java: ClientProgram, kind: str) -> None:
    java.tell(kind)
    java.wait_for(lambda: any(line[0] == kind for line in java.lines("SENT")), f"send of {kind}")
    (outcome,) = [line[1] for line in java.lines("SENT") if line[0] == kind]
    assert outcome == ""
