"""Two brokers that get the same bytes: one serves them with the compiled fast path, one in Python alone.

The connections are real, and so are lanes, tables and stores; only the socket is not, and the clock, so that what both
write can be compared byte by byte.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from appliance.acl.replay import ReplayGuard
from appliance.broker.controller import BrokerController
from appliance.broker.fast_path import fast_path_of
from appliance.broker.fast_pulls import FastPulls
from appliance.broker.processors.table import TABLE
from appliance.remoting.connection import ServerConnection
from appliance.remoting.fast_path import FastPath
from appliance.remoting.route_table import routes_of
from gantrymq.remoting.admin_bodies import TopicConfig
from gantrymq.remoting.command import RemotingCommand
from store.message_store import MessageStore
from tests.appliance.acl.cluster import accounts_file
from tests.appliance.broker.processors.unopened import unopened_broker

START_S = 1_700_000_000.0
TOPICS = {"orders": 4, "payments": 1, "a": 8}


class FakeSocket:
    """A transport that keeps what was written."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.written = bytearray()
        self.is_paused = False
        self.is_over = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self.host, 40_000), "sockname": ("127.0.0.1", 10_911), "sslcontext": None}[name]

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def write(self, data: bytes) -> None:
        self.written += data

    def writelines(self, parts: list[bytes | memoryview]) -> None:
        for part in parts:
            self.written += part

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_over

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_over = True

    abort = close


class Counting:
    """A fast path that counts all that it serves."""

    def __init__(self, fast_path: FastPath) -> None:
        self.compiled = fast_path
        self.total = 0

    @property
    def count(self) -> int:
        return self.compiled.count

    @property
    def pull_count(self) -> int:
        return self.compiled.pull_count

    def figures(self) -> tuple[int, int, dict[str, int]]:
        return self.compiled.figures()

    def serve(self, buffer: bytes, start: int, count_max: int, connection: ServerConnection) -> int:
        end = self.compiled.serve(buffer, start, count_max, connection)
        self.total += self.count
        assert start <= end <= len(buffer)
        assert self.count <= count_max
        return end


class Side:
    """One of the two brokers, with one connection."""

    def __init__(self, broker: BrokerController, *, is_fast: bool) -> None:
        self.broker = broker
        self.fast_path: Counting | None = None
        if is_fast:
            frame_bytes_max = broker.server.frame_bytes_max
            fast_path = fast_path_of(broker, FastPulls(broker), frame_bytes_max=frame_bytes_max)
            assert fast_path is not None
            self.fast_path = Counting(fast_path)
        broker.server.serve(routes_of(TABLE, broker), self.fast_path)
        self.connect()

    @property
    def served_fast(self) -> int:
        return self.fast_path.total if self.fast_path is not None else 0

    def connect(self, host: str = "127.0.0.1") -> None:
        self.socket = FakeSocket(host)
        self.connection = ServerConnection(self.broker.server)
        self.connection.connection_made(self.socket)  # type: ignore[arg-type]

    async def receive(self, data: bytes) -> None:
        """Let bytes arrive, and all that came be served."""
        if self.socket.is_over:
            return
        self.connection.data_received(data)
        lanes = self.broker.lanes
        for _ in range(1000):
            await asyncio.sleep(0)
            if not any(lane.queue or lane.running for lane in lanes.by_name.values()) and not lanes.parked_count:
                break
        await asyncio.sleep(0)

    def answers(self) -> list[RemotingCommand]:
        """All answers so far, in the order of their opaques."""
        return sorted(frames(bytes(self.socket.written)), key=lambda answer: (answer.opaque, answer.encode()))

    def state(self) -> dict[str, Any]:
        """All that a send leaves behind."""
        store = self.broker.store
        parts = store.parts
        parts.dispatcher.put_pending()
        log = parts.log
        files = [bytes(file.map[: max(0, log.position - file.base)]) for file in log.queue.files]
        queues = {
            (queue.topic, queue.queue_id): (queue.next_index, bytes(queue.tail), queue.dirty) for queue in parts.queues
        }
        stats = store.stats
        targets = {
            name: (target.count, target.times, target.size) for name, target in self.broker.send_targets.plain.items()
        }
        return {
            "log": (log.position, log.store_timestamp, files),
            "queues": queues,
            "dirty": sorted((queue.topic, queue.queue_id) for queue in parts.queues.dirty),
            "index": [bytes(file.map[: file.entries_at + 20 * file.count]) for file in parts.index.files],
            "index fields": [
                (file.count, file.used_slots, file.begin_ms, file.end_ms, file.begin_offset, file.end_offset)
                for file in parts.index.files
            ],
            "stats": (stats.put_times, stats.put_bytes, stats.put_failed_times),
            "targets": targets,
            "get stats": (stats.get_found_times, stats.get_miss_times, stats.get_transferred),
            "lanes": {name: lane.served for name, lane in self.broker.lanes.by_name.items()},
            "offset": self.broker.offsets.query("readers", "orders", 1),
            "topics": sorted(self.broker.topics.configs),
            "closed": self.socket.is_over,
            "access": self._access(),
        }

    def _access(self) -> dict[str, Any]:
        """What access control counted. Which stamps are used up shows when they are sent again."""
        access, notes = self.broker.access, self.connection.access
        if access is None:
            return {}
        return {
            "denied": access.denied,
            "unstamped": access.unstamped,
            "account": notes and notes.account and notes.account.access_key,
        }


class Pair:
    """Both sides."""

    def __init__(self, fast: Side, plain: Side) -> None:
        self.fast, self.plain = fast, plain

    async def receive(self, data: bytes) -> None:
        await self.fast.receive(data)
        await self.plain.receive(data)

    async def receive_in_pieces(self, data: bytes) -> None:
        step = random.Random(7)
        at = 0
        while at < len(data):
            size = step.randrange(1, 400)
            await self.receive(data[at : at + size])
            at += size

    async def receive_cut(self, whole: bytes) -> None:
        """Frames that say to be shorter than this one was: header, fields or body end anywhere."""
        for size in range(4, len(whole) - 4):
            await self.receive(size.to_bytes(4) + whole[4 : 4 + size])
            for side in (self.fast, self.plain):
                if side.socket.is_over:
                    side.connect()

    def connect(self, host: str = "127.0.0.1") -> None:
        """From now on both have another connection."""
        self.fast.connect(host)
        self.plain.connect(host)

    def check(self) -> None:
        """Compare all that both said and left behind."""
        answers, wanted = self.fast.answers(), self.plain.answers()
        if self.plain.socket.is_over:
            # Both stored what came before a bad frame. How many of its answers were written before the connection was
            # closed depends on how long the turn took.
            in_both = {answer.encode() for answer in answers} & {answer.encode() for answer in wanted}
            fewer = min(answers, wanted, key=len)
            assert all(answer.encode() in in_both for answer in fewer)
            answers = wanted = fewer
        for answer, expected in zip(answers, wanted, strict=True):
            assert (answer, answer.ext_fields, answer.remark) == (expected, expected.ext_fields, expected.remark)
        fast, plain = self.fast.state(), self.plain.state()
        for name, value in plain.items():
            assert fast[name] == value, name


@contextlib.contextmanager
def pair_of_brokers(
    folder: Path, *, store: dict[str, Any] | None = None, accounts: str = "", **settings: Any
) -> Iterator[Pair]:
    """Two brokers with the same topics and the same clock, which stands still; accounts: their accounts file."""
    with pytest.MonkeyPatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr("random.randrange", lambda stop: stop - 1)  # the queue of a message that names none
        patch.setattr("time.time", lambda: START_S)
        patch.setitem(MessageStore.__init__.__kwdefaults__, "clock", lambda: START_S)
        patch.setitem(ReplayGuard.__init__.__kwdefaults__, "clock", lambda: START_S)
        clock = SimpleNamespace(time_ns=lambda: int(START_S) * 1_000_000_000)
        patch.setattr("gantrymq.remoting.signature.time", clock)  # the stamps'
        if accounts:
            settings["acl_enable"] = True
        brokers = []
        for name in ("fast", "plain"):
            patient = {"page_cache_busy_ms": 1 << 40}  # however slow the machine is
            broker = stack.enter_context(unopened_broker(folder / name, store=patient | (store or {}), **settings))
            for topic, queues in TOPICS.items():
                broker.topics.update(TopicConfig(topic, queues, queues))
            if broker.accounts is not None:
                accounts_file(folder / name, accounts)
                broker.accounts.load()
            brokers.append(broker)
        yield Pair(Side(brokers[0], is_fast=True), Side(brokers[1], is_fast=False))


def frames(data: bytes) -> list[RemotingCommand]:
    """Cut whole frames."""
    found = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        found.append(RemotingCommand.decode(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found
