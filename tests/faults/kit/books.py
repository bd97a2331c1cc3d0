"""Numbered messages to a broker process, and the exact count afterwards: acknowledged against stored."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from appliance.bench.peer import Peer
from appliance.settings.loader import load_broker_config
from gantrymq import Message, MessageQueue, Producer, SendStatus
from gantrymq.client.admin.client import AdminClient
from gantrymq.errors import GantryError, ResponseError
from gantrymq.message import record
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.store.conftest import opened, read_all

TOPIC = "Faults"
PATIENCE_S = 240.0  # a bound for what hangs
BUSY = "start flow control for a while"


class Books:
    """One sender, one queue. `refused` holds remarks; what got no clear answer may be stored or not."""

    def __init__(self, peer: Peer, *, timeout_s: float = 30.0) -> None:
        self.acknowledged: set[int] = set()
        self.uncertain: set[int] = set()
        self.refused: list[str] = []
        self._peer = peer
        self._number = 0
        self._producer = Producer(
            peer.namesrv_address, group="books", retries=0, delivery_timeout_s=timeout_s, compress_from_bytes=1 << 30
        )

    async def __aenter__(self) -> Self:
        await self._producer.__aenter__()
        self.admin = await AdminClient(self._peer.namesrv_address).__aenter__()
        await self.admin.topics.create_at(self._peer.broker_address, TopicConfig(TOPIC, 1, 1))
        self._queue = MessageQueue(TOPIC, self._peer.broker_name, 0)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.admin.__aexit__(None, None, None)
        await self._producer.__aexit__(None, None, None)

    async def send(self, count: int, body_bytes: int = 1000) -> None:
        """Send so many, one after the other, and book what became of each; to a busy machine again, as asked."""
        for _ in range(count):
            while not await self.send_one(body_bytes) and self.refused and BUSY in self.refused[-1]:
                self.refused.pop()
                await asyncio.sleep(0.1)

    async def send_one(self, body_bytes: int = 1000) -> bool:
        number = self._number
        self._number += 1
        try:
            body = b"%08d" % number + os.urandom(body_bytes)
            result = await self._producer.send(Message(TOPIC, body), queue=self._queue)
        except ResponseError as exc:
            self.refused.append(str(exc))
            return False
        except GantryError:
            self.uncertain.add(number)
            return False
        if result.status is SendStatus.SEND_OK:
            self.acknowledged.add(number)
            return True
        self.uncertain.add(number)  # FLUSH_DISK_TIMEOUT: stored, and the disk may not have it
        return False

    async def go_on(self) -> None:
        """After a restart: until a message is acknowledged again. What finds no connection is not stored."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.send_one():
                await asyncio.sleep(0.05)

    async def trouble(self) -> str:
        """What the broker says of its disk; the Overview shows it."""
        info = await self.admin.brokers.runtime_info(self._peer.broker_address)
        return info.get("storeTrouble", "")

    async def read(self, timeout_s: float) -> set[int]:
        """Read the queue from its start through the broker, as far as it goes now. GantryError, TimeoutError."""
        found: set[int] = set()
        async with asyncio.timeout(timeout_s):
            offset, end = 0, 1
            while offset < end:
                messages, offset, _, end = await self.admin.messages.pull_at(
                    self._peer.broker_address, TOPIC, 0, offset
                )
                found |= {int(message.body[:8]) for message in messages}
        return found

    def check(self) -> None:
        """The broker is down: its folder has all that was acknowledged, once, and nothing that was refused."""
        found = stored_numbers(self._peer)
        assert len(found) == len(set(found)), "a message is there twice"
        lost = self.acknowledged - set(found)
        assert not lost, f"{len(lost)} of {len(self.acknowledged)} acknowledged messages are lost: {sorted(lost)[:5]}"
        extra = set(found) - self.acknowledged - self.uncertain
        assert not extra, f"{len(extra)} messages were refused and stored: {sorted(extra)[:5]}"


def stored_numbers(peer: Peer) -> list[int]:
    _, config, _ = load_broker_config(peer.home / "broker.properties")
    store = opened(config)
    try:
        return [int(record.decode_record(raw).body[:8]) for raw in read_all(store, TOPIC)]
    finally:
        store.close()


async def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
        await asyncio.sleep(0.02)


def log_of(peer: Peer) -> str:
    return (peer.home / "broker.log").read_text(errors="replace")


def logged(peer: Peer, event: str) -> list[str]:
    """The broker's log lines of an event."""
    return re.findall(rf"^.*event={event}\b.*$", log_of(peer), re.MULTILINE)


def small_files(**more: str) -> dict[str, str]:
    return {"mappedFileSizeCommitLog": str(1 << 20), "messageIndexEnable": "false", **more}


def library(pattern: str) -> Path | None:
    """A shared library of a Debian package, whatever the machine's architecture is called."""
    return next(iter(sorted(Path("/usr/lib").glob(pattern))), None)


def clocked_by(faketime: Path, clock: Path) -> dict[str, str]:
    """The environment of a process that takes its time of day from a file; the time that has passed is the real one."""
    return {
        "LD_PRELOAD": str(faketime),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }
