"""Ten thousand names with tricks in them, given to all that takes a name: no file appears outside of the store."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from appliance.bench.frames import send_fields
from gantrymq.remoting.bodies import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.peer import Peer, connected
from tests.harness import serving

NAMES = 10_000
IN_FLIGHT = 100
TRICKS = (
    "../", "..", "/", "\\", "..\\", "\0", "%2e%2e%2f", "%00", "%", "|", "\u2025/", "\uff0e\uff0e\uff0f", "\u202e",
    "C:\\", "//", "./", "~", "$(x)", "`x`", "\n", "\r", "\x01", "\x02", " ", "", "é", "中", "\U0001f4a9", "\ufeff",
    "%RETRY%", "%DLQ%", "CON", ".lock", "%RETRY%../", "con.", "\u0000", "a" * 130, "-", "_", "@", "#", ":", "*", "?",
)  # fmt: skip


def names() -> Iterator[str]:
    """Tricks in rows of their own, then in all kinds of company; some are names like any other."""
    yield from TRICKS
    chance = random.Random(35)
    for _ in range(NAMES - len(TRICKS)):
        parts = chance.choices([*TRICKS, "x", "topic", "etc", "passwd"], k=chance.randint(1, 5))
        yield "".join(parts)


def requests(name: str) -> Iterator[RemotingCommand]:
    """Everything that makes something of a name, in turn."""
    yield RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("PG", name, 0, ""), b"x")
    fields = {
        "topic": name, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
        "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    yield RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
    subscription = [SubscriptionData(topic=name)]
    beat = HeartbeatData("c", [ProducerData(name)], [ConsumerData(name, subscription_data_set=subscription)])
    yield RemotingCommand.request(RequestCode.HEART_BEAT, body=beat.to_json())
    group = json.dumps({"groupName": name, "retryQueueNums": 1}).encode()
    yield RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group)
    fields = {"consumerGroup": name, "topic": name, "queueId": "0", "commitOffset": "1"}
    yield RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, fields)
    yield RemotingCommand.request(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": name})


async def test_no_name_leaves_the_store(tmp_path: Path) -> None:
    """S35."""
    outside = tmp_path / "outside"
    outside.mkdir()
    root = outside / "a" / "b" / "c"
    root.mkdir(parents=True)
    (outside / "passwd").write_text("kept")
    given = 0
    async with (
        serving(root) as cluster,
        connected(cluster.broker.port) as peer,
        connected(cluster.broker.port) as other,
    ):
        batch: list[RemotingCommand] = []
        for number, name in enumerate(names()):
            all_of_it = list(requests(name))
            batch.append(all_of_it[number % len(all_of_it)])
            given += 1
            if len(batch) == IN_FLIGHT:
                await answered(peer, batch)
                batch.clear()
        await answered(peer, batch)
        assert (await other.ask(RequestCode.GET_BROKER_RUNTIME_INFO)).code == 0
        known = {*cluster.broker.topics.configs, *cluster.broker.groups.configs}
    assert given == NAMES
    assert {path.relative_to(outside).as_posix() for path in outside.rglob("*")} == {
        "passwd",
        "a",
        "a/b",
        "a/b/c",
        *(f"a/b/c/{path.relative_to(root).as_posix()}" for path in root.rglob("*")),
    }
    assert {path.name for path in root.iterdir()} <= {"store", "kvConfig.json", "namesrv", "audit.jsonl"}
    assert not {path.name for path in (root / "store").iterdir()} & known
    queues = root / "store" / "consumequeue"
    assert all(path.parent.parent == queues for path in queues.glob("*/*")), "a topic's folder lies in one place"
    assert all(name.isascii() and name.isprintable() and "/" not in name and "." not in name for name in known)


async def answered(peer: Peer, batch: list[RemotingCommand]) -> None:
    """Send them all, and read as many answers; what the broker says on its own (40) is none."""
    for request in batch:
        peer.write(request.encode())
    wanted = {request.opaque for request in batch}
    while wanted:
        answer = await peer.read()
        if answer.is_response:
            wanted.discard(answer.opaque)
