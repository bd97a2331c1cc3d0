"""A broker whose commit log is damaged behind its back: a byte of a body or of a header, a page of zeros."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gantrymq import Message, Producer
from gantrymq.client.admin.client import AdminClient
from gantrymq.remoting.admin_bodies import TopicConfig
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
