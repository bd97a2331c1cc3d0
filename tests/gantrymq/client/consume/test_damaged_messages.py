"""Damage in a broker's commit log: consumers skip exactly what is damaged, say so, and go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gantrymq import ConsumeFrom, ConsumeResult, LostMessage, Message, MessageExt, MessageModel, MessageQueue, Producer
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.consume.pull_consumer import PullConsumer
from gantrymq.client.consume.push_consumer import PushConsumer
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.connection import Answered
from tests.gantrymq.client.seen import until
from tests.harness import ServingCluster, serving

COUNT = 300
BODY_AT = 88
Spoil = Callable[["Log", list[int]], set[int]]


class Log:
    """The broker's commit log, spoilt behind its back."""

    def __init__(self, root: Path) -> None:
        self._path = root / "commitlog" / f"{0:020d}"

    def flip(self, offset: int) -> None:
        with self._path.open("r+b") as file:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(offset)
            file.write(bytes([byte ^ 0xFF]))

    def zero(self, offset: int, size: int) -> None:
        with self._path.open("r+b") as file:
            file.seek(offset)
            file.write(bytes(size))


def body_byte(log: Log, places: list[int]) -> set[int]:
    log.flip(places[100] + BODY_AT + 3)
    return {100}


def first_and_last(log: Log, places: list[int]) -> set[int]:
    for number in (0, COUNT - 1):
        log.flip(places[number] + BODY_AT)
    return {0, COUNT - 1}


def neighbours(log: Log, places: list[int]) -> set[int]:
    for number in range(40, 45):
        log.flip(places[number] + BODY_AT)
    return set(range(40, 45))


def magic(log: Log, places: list[int]) -> set[int]:
    log.flip(places[77] + 5)
    return {77}


def size(log: Log, places: list[int]) -> set[int]:
    log.flip(places[77] + 3)
    return {77}


def body_length(log: Log, places: list[int]) -> set[int]:
    log.flip(places[77] + 84)
    return {77}


def queue_offset(log: Log, places: list[int]) -> set[int]:
    """What is said there is known otherwise: nothing is lost, and no group's progress follows it."""
    log.flip(places[77] + 20)
    log.flip(places[78] + 27)
    return set()


def page(log: Log, places: list[int]) -> set[int]:
    start = -(-places[50] // 4096) * 4096
    log.zero(start, 4096)
    ends = [*places[1:], places[-1] + 1]
    return {number for number, at in enumerate(places) if at < start + 4096 and ends[number] > start}


DAMAGE = [body_byte, first_and_last, neighbours, magic, size, body_length, queue_offset, page]


@asynccontextmanager
async def spoilt(folder: Path, spoil: Spoil, queues: int = 1) -> AsyncIterator[tuple[ServingCluster, set[int]]]:
    """A broker with COUNT messages in topic T; the numbers of those that are lost."""
    async with serving(folder) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin:
            await admin.topics.create_at(cluster.broker_address, TopicConfig("T", queues, queues))
        async with Producer(cluster.namesrv_address) as producer:
            for number in range(COUNT):
                await producer.send(Message("T", b"%d " % number + bytes(600), keys=f"k{number}"))
        units = cluster.broker.store.consume_queue_units("T", 0, 0, COUNT)
        yield cluster, spoil(Log(folder / "store"), [unit.physical_offset for unit in units])


def number_of(message: MessageExt) -> int:
    return int(message.body.split()[0])


def lines_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[logging.LogRecord]:
    return [
        line for line in caplog.records if getattr(line, "event", "") == "message_lost" and line.name.startswith(logger)
    ]


@pytest.mark.parametrize("spoil", DAMAGE)
async def test_a_pull_consumer_polls_all_but_what_is_damaged(
    tmp_path: Path, spoil: Spoil, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[LostMessage] = []
    seen: list[MessageExt] = []
    async with spoilt(tmp_path, spoil) as (cluster, lost):
        expected = [number for number in range(COUNT) if number not in lost]
        async with PullConsumer(
            cluster.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET, on_message_lost=told.append
        ) as consumer:
            queue = MessageQueue("T", cluster.broker.config.broker_name, 0)
            await consumer.assign([queue])

            async def poll() -> None:
                while len(seen) < len(expected) or len(told) < len(lost):
                    seen.extend(await consumer.poll(1.0))

            await asyncio.wait_for(poll(), 60)
            await consumer.commit()
            await until(lambda: len(told) == len(lost))
            assert await consumer.committed(queue) == COUNT
        units = cluster.broker.store.consume_queue_units("T", 0, 0, COUNT)
        async with AdminClient(cluster.namesrv_address) as admin:
            info = await admin.brokers.runtime_info(cluster.broker_address)
    assert [number_of(message) for message in seen] == expected
    assert [message.queue_offset for message in seen] == expected
    assert [each.queue_offset for each in told] == sorted(lost)
    assert {each.queue for each in told} <= {queue}
    lines = lines_of(caplog, "gantrymq")
    assert [vars(line)["queue_offset"] for line in lines] == sorted(lost)
    assert all(vars(line)["topic"] == "T" and vars(line)["group"] == "g" for line in lines)
    damaged = sorted(lost) or [77, 78]  # the broker has looked, too: their places in queue and log
    lines = lines_of(caplog, "store")
    assert [vars(line)["queue_offset"] for line in lines] == damaged
    assert [vars(line)["physical_offset"] for line in lines] == [units[number].physical_offset for number in damaged]
    assert info["messagesDamaged"] == str(len(damaged))
    place = units[damaged[-1]].physical_offset
    assert info["messagesDamagedLast"] == f"T-0 queue offset {damaged[-1]} physical offset {place}"


@pytest.mark.parametrize("spoil", [body_byte, neighbours, page])
@pytest.mark.parametrize(
    "options", [{}, {"ordered": True}, {"model": MessageModel.BROADCASTING}, {"concurrency": 1, "batch_size": 10}]
)
async def test_a_push_consumer_goes_on_behind_damage(tmp_path: Path, spoil: Spoil, options: dict[str, object]) -> None:
    told: list[LostMessage] = []
    seen: list[int] = []

    async def listen(messages: list[MessageExt]) -> ConsumeResult:
        seen.extend(number_of(message) for message in messages)
        return ConsumeResult.SUCCESS

    async with spoilt(tmp_path, spoil) as (cluster, lost):
        consumer = PushConsumer(
            cluster.namesrv_address,
            group="g",
            listener=listen,
            consume_from=ConsumeFrom.FIRST_OFFSET,
            offsets_folder=tmp_path / "offsets",
            on_message_lost=told.append,
            **options,  # type: ignore[arg-type]
        )
        consumer.subscribe("T")
        async with consumer:
            await until(lambda: len(seen) >= COUNT - len(lost) and len(told) >= len(lost))
        if options.get("ordered"):
            assert seen == sorted(seen)
        assert sorted(seen) == [number for number in range(COUNT) if number not in lost]
        assert [each.queue_offset for each in told] == sorted(lost)
        if "model" not in options:
            assert cluster.broker.offsets.query("g", "T", 0) == COUNT


async def test_what_was_torn_when_it_was_read_first_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a second pull tells."""
    asked: list[tuple[str, str]] = []
    invoke_for = RemotingClient.invoke_for
    async with spoilt(tmp_path, body_byte) as (cluster, _lost):
        (damaged,) = cluster.broker.store.consume_queue_units("T", 0, 100, 1)

        async def counting(
            client: RemotingClient, answered: Answered, address: str, request: RemotingCommand, *, timeout_s: float
        ) -> None:
            if request.code == RequestCode.PULL_MESSAGE:
                asked.append((request.ext_fields["queueOffset"], request.ext_fields["maxMsgNums"]))
                if asked[-1][1] == "1":
                    Log(tmp_path / "store").flip(damaged.physical_offset + BODY_AT + 3)
            await invoke_for(client, answered, address, request, timeout_s=timeout_s)

        monkeypatch.setattr(RemotingClient, "invoke_for", counting)
        async with PullConsumer(cluster.namesrv_address, group="g", consume_from=ConsumeFrom.FIRST_OFFSET) as consumer:
            await consumer.assign([MessageQueue("T", cluster.broker.config.broker_name, 0)])
            seen: list[int] = []
            while len(seen) < COUNT:
                seen += [number_of(message) for message in await consumer.poll(5.0)]
    assert seen == list(range(COUNT))
    assert ("100", "1") in asked
