"""The live tail: a look that fails has shown nothing, and a topic that is slow to read holds up no other."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.cluster import message_values
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.message_values import MessageLine
from dashboard.cluster.values import QueueExtent
from dashboard.live import tail
from dashboard.live.tail import TopicTail, render_lines, topic_tail
from gantrymq.client.results import LostMessage
from gantrymq.message.model import Message, MessageExt
from tests.dashboard.conftest import Client, Topic, gateway_to
from tests.dashboard.live.socket_client import connected, frame_of
from tests.gantrymq.damaged_log import COUNT, body_byte, spoilt
from tests.waiting import WITHIN_S, aside


class SlowTopic(TopicTail):
    """Counts the looks; those at the topic "slow" never end."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: Counter[str] = Counter()
        self.often = asyncio.Event()

    async def look(self, gateway: Gateway, topic: str) -> None:
        self.looks[topic] += 1
        if topic == "slow":
            await asyncio.Event().wait()
        if self.looks[topic] > 3:
            self.often.set()


class BusyTopic:
    """Stands for the cluster: each look at a queue finds as many messages as it asks for."""

    def __init__(self, queues: tuple[QueueExtent, ...]) -> None:
        self._queues = queues

    async def queues(self, topic: str, *, timeout_s: float) -> tuple[QueueExtent, ...]:
        return self._queues

    def known_rate(self, topic: str) -> None:
        return None

    async def pull_new(
        self, topic: str, queue: QueueExtent, since: int, limit: int, timeout_s: float
    ) -> tuple[list[MessageExt], list[LostMessage]]:
        host = ("127.0.0.1", 1)
        return [
            MessageExt(topic, b"\x00", 0, {}, queue.queue_id, offset, offset, 0, 0, 0, host, offset, host, 0, 0, 0, "a")
            for offset in range(since, since + limit)
        ], []


async def test_a_slow_topic_holds_up_no_other(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "PERIOD_S", 0.01)
    watching = SlowTopic()
    watching.watch("slow", 1, lambda: None)
    watching.watch("quick", 1, lambda: None)
    async with aside(watching.run(gateway)):
        await asyncio.wait_for(watching.often.wait(), 60)
    assert watching.looks["slow"] == 1


async def test_a_look_that_was_cut_off_is_made_up_for(
    log_in: Client, make_topic: Topic, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(topic: str, messages: object) -> list[str]:
        raise TimeoutError

    await make_topic("cut-off", messages=[Message("cut-off", b"before")])
    async with connected(await log_in("reader")) as socket:
        await socket.send_to(json.dumps({"subscribe": ["topic:cut-off"]}))
        await frame_of(socket, "topic:cut-off", "rows")
        await gateway.messages.send(Message("cut-off", b"after"))
        with monkeypatch.context() as patch:
            patch.setattr(tail, "render_lines", cut_off)
            with pytest.raises(TimeoutError):
                await topic_tail.look(gateway, "cut-off")
        await topic_tail.look(gateway, "cut-off")
        frame = await frame_of(socket, "topic:cut-off", "rows")
    assert "after" in frame["rows"][0]


async def test_no_more_bodies_are_decoded_than_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []

    def decode(message: MessageExt) -> str:
        decoded.append(message.msg_id)
        return ""

    monkeypatch.setattr(message_values, "preview", decode)
    queues = tuple(QueueExtent("broker-a", queue, 0, 100, 0) for queue in range(4))
    source = SimpleNamespace(topics=BusyTopic(queues), messages=BusyTopic(queues))
    watching = TopicTail()
    with watching.listen("T", 1) as arrivals:
        watching.begin_at("T", [replace(queue, max_offset=0) for queue in queues])
        await watching.look(source, "T")  # type: ignore[arg-type]
        lines, more = arrivals.get_nowait()
    assert len(lines) == len(decoded) == tail.frames.ROWS_MAX
    assert len(lines) + more == 400


async def test_a_damaged_message_has_a_row_among_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watching = TopicTail()
    async with (
        spoilt(tmp_path, body_byte) as (cluster, lost),
        gateway_to(cluster.namesrv_address, monkeypatch) as source,
    ):
        with watching.listen("T", 1) as arrivals:
            (queue,) = await source.topics.queues("T", timeout_s=WITHIN_S)
            watching.begin_at("T", [replace(queue, max_offset=min(lost) - 2)])
            monkeypatch.setattr(tail.frames, "ROWS_MAX", COUNT)
            lines: list[MessageLine] = []
            while not lines or lines[0].queue_offset <= min(lost):
                await watching.look(source, "T")
                lines = arrivals.get_nowait()[0] + lines
    offsets = [line.queue_offset for line in lines]
    assert offsets == list(reversed(range(min(lost) - 2, offsets[0] + 1)))
    assert [line.queue_offset for line in lines if line.damage] == sorted(lost)
    rows = render_lines("T", lines)
    assert "damaged" in rows[-3] and "does not match its CRC" in rows[-3] and "damaged" not in rows[-1]
