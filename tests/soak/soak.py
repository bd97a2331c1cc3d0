"""Soak: a broker behind relays, producers, groups whose members may be killed, and what became of every message."""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from appliance.bench.processes import Process
from gantrymq import AdminClient, Message, Producer, SendResult
from gantrymq.errors import GantryError
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.gantrymq.client.seen import until
from tests.harness import LocalCluster
from tests.soak.member import consumer_of
from tests.soak.records import Ledger, Marks, Progress, Verdict, judge
from tests.soak.retries import Retries, may_be_stored
from tests.source_files import ROOT

KEYS = tuple(f"key-{number}" for number in range(8))  # streams of topic "orders"
FREE = "free"  # the stream of topic "events"
GROUPS = {"ordered": "orders", "shared": "events"}  # of members: a group and its topic
STEADY = "steady"  # the group of this process, of both topics
MEMBERS = 2
SEND_S = 5.0  # then a message that was not acknowledged is sent anew, under the same number


class Use(NamedTuple):
    """What this process holds."""

    tasks: int
    sockets: int
    resident_kib: int


def use() -> Use:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Use(len(asyncio.all_tasks()), sum(map(_is_socket, Path("/proc/self/fd").iterdir())), pages * 4)


def _is_socket(descriptor: Path) -> bool:
    try:
        return str(descriptor.readlink()).startswith("socket:")
    except OSError:
        return False  # the listing's own, closed by now


@dataclass
class Soak:
    """`pause_s`: of each stream, between two messages."""

    folder: Path
    cluster: LocalCluster
    namesrv: str  # the relay's
    pause_s: float
    acknowledged: Counter[str] = field(default_factory=Counter)
    retries: Retries = field(default_factory=Retries)
    sent_again: Marks = field(default_factory=Marks)
    failed_sends: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    is_over: bool = False
    members: dict[str, list[Process]] = field(default_factory=dict)
    _progress: dict[str, Progress] = field(default_factory=dict)

    def ledger(self, group: str) -> Path:
        return self.folder / f"{group}.txt"

    # -- members ------------------------------------------------------------------------------------------------------

    def start_member(self, group: str) -> None:
        command = [sys.executable, "-m", "tests.soak.member", self.namesrv, group, GROUPS[group], group]
        started = Process(
            f"member {group}",
            [*command, self.ledger(group)],
            self.folder / "members.log",
            env={"PYTHONPATH": str(ROOT)},
        )
        self.members.setdefault(group, []).append(started)

    def kill_member(self, group: str) -> None:
        self.members[group].pop(0).kill()

    async def stop_members(self) -> None:
        every = [each for members in self.members.values() for each in members]
        await asyncio.gather(*(asyncio.to_thread(each.stop) for each in every))

    # -- producers ----------------------------------------------------------------------------------------------------

    async def send_in_order(self, producer: Producer, key: str) -> None:
        """Number after number of a key, each until it is acknowledged."""
        while not self.is_over:
            await self._send(producer, Message("orders", f"{key} {self.acknowledged[key]}".encode()), key)
            await asyncio.sleep(self.pause_s)  # the pace of the load

    async def _send(self, producer: Producer, message: Message, key: str) -> None:
        is_open = False
        while True:
            try:
                result = await producer.send(message, sharding_key=key, timeout_s=SEND_S)
                break
            except GantryError as exc:
                self.failed_sends += 1
                is_open |= may_be_stored(exc)
        self._note(key, result, is_open=is_open)

    async def send_soon(self, producer: Producer) -> None:
        """The free stream in small batches, of which those that fail are sent anew."""
        while not self.is_over:
            first = self.acknowledged[FREE]
            numbers = range(first, first + 4)
            results: dict[int, SendResult] = {}
            open_ones: set[int] = set()
            while left := [number for number in numbers if number not in results]:
                futures = [await producer.send_soon(Message("events", f"{FREE} {number}".encode())) for number in left]
                outcomes = await asyncio.gather(*futures, return_exceptions=True)
                for number, outcome in zip(left, outcomes, strict=True):
                    if isinstance(outcome, GantryError):
                        self.failed_sends += 1
                        if may_be_stored(outcome):
                            open_ones.add(number)
                    elif isinstance(outcome, BaseException):
                        raise outcome
                    else:
                        results[number] = outcome
            for number in numbers:
                self._note(FREE, results[number], is_open=number in open_ones)
            await asyncio.sleep(self.pause_s)  # the pace of the load

    def _note(self, stream: str, result: SendResult, *, is_open: bool) -> None:
        """The next message of a stream is acknowledged. is_open: it was handed over before, and may be stored since."""
        if is_open or result.msg_id in self.retries.msg_ids:
            self.retries.msg_ids.discard(result.msg_id)
            self.sent_again.add((stream, self.acknowledged[stream]))
        self.acknowledged[stream] += 1

    # -- what became of it --------------------------------------------------------------------------------------------

    def _expected(self, group: str) -> dict[str, int]:
        streams = {"ordered": KEYS, "shared": (FREE,), STEADY: (*KEYS, FREE)}[group]
        return {stream: self.acknowledged[stream] for stream in streams}

    def _of(self, group: str) -> Progress:
        return self._progress.setdefault(group, Progress(self.ledger(group)))

    async def joined(self) -> None:
        """Wait until every member has had a queue: they are all connected then."""

        def is_joined(progress: Progress) -> bool:
            progress.read()
            return len(progress.readers) >= MEMBERS

        for group in GROUPS:
            await until(functools.partial(is_joined, self._of(group)))

    async def caught_up(self) -> None:
        """Wait until every group consumed what is acknowledged by now."""
        for group in (*GROUPS, STEADY):
            await until(functools.partial(self._of(group).has, self._expected(group)))

    async def sent(self, count: int) -> None:
        """Wait until so many more messages are acknowledged."""
        goal = self.acknowledged.total() + count
        await until(lambda: self.acknowledged.total() >= goal)

    def verdict(self, group: str) -> Verdict:
        with self.ledger(group).open(encoding="ascii") as lines:
            return judge(lines, self._expected(group), self.sent_again, is_ordered=group == "ordered")


@asynccontextmanager
async def soaking(folder: Path, cluster: LocalCluster, namesrv: str, *, pause_s: float) -> AsyncIterator[Soak]:
    """Members, producers and the steady consumer run while the block does; at its end every group catches up."""
    soak = Soak(folder, cluster, namesrv, pause_s)
    async with AsyncExitStack() as stack:
        async with AdminClient(cluster.namesrv_address) as admin:
            for topic in GROUPS.values():
                await admin.topics.create_at(cluster.broker_address, TopicConfig(topic, 4, 4))
        stack.push_async_callback(soak.stop_members)
        for group in GROUPS:
            for _ in range(MEMBERS):
                soak.start_member(group)
        ledger = Ledger(soak.ledger(STEADY))
        stack.callback(ledger.close)
        stack.enter_context(soak.retries.listening())
        await stack.enter_async_context(consumer_of(namesrv, STEADY, [*GROUPS.values()], ledger, is_ordered=False))
        producer = await stack.enter_async_context(Producer(namesrv, group="soak", delivery_timeout_s=SEND_S))
        async with asyncio.TaskGroup() as sending:
            for key in KEYS:
                sending.create_task(soak.send_in_order(producer, key))
            sending.create_task(soak.send_soon(producer))
            try:
                yield soak
            finally:
                soak.is_over = True
        await soak.caught_up()
