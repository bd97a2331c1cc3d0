"""Clients that mean harm beside one that does not: it is refused nothing, answered soon, and the memory comes back.

The modest client sends a hundred messages a second, and a heartbeat with each tenth. Sixteen kinds of abuse, by forty
connections each, from the same address, which is the harder case: between addresses the broker shares its time first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from gantrymq.remoting.client import RemotingClient
from tests.conftest import time_limit
from tests.faults.kit.broker_process import anonymous_bytes, broker_process
from tests.faults.kit.hostile import KINDS
from tests.faults.kit.modest_client import beat, store_one, timed
from tests.harness import LocalCluster

SECONDS = 3
PERIOD_S = 0.01
BEAT_EACH = 10
ANSWER_P99_S = 0.5  # the goal is 0.25; measured 0.02 to 0.24 on two cores that attackers, broker and probe share
ANSWER_S = 3.0
MEMORY_MORE_MAX = 800 * 1024 * 1024  # incomplete frames may take 512 MiB in all
MEMORY_LEFT_MAX = 256 * 1024 * 1024  # when they have gone: tables they filled, and arenas that one object keeps
LOG_BYTES_MAX = 4 << 20


@pytest.mark.parametrize("kind", list(KINDS))
async def test_harm_stays_with_who_does_it(tmp_path: Path, kind: str) -> None:
    with LocalCluster(tmp_path) as cluster:
        address = cluster.broker_address
        client = RemotingClient()
        try:
            await store_one(client, address)
            await beat(client, address)
            broker = broker_process(tmp_path)
            memory_before = anonymous_bytes(broker)
            async with attack(kind, address) as attackers:
                waits, memory = await probe(client, address, broker, attackers)
            waits.sort()
            p99 = waits[len(waits) * 99 // 100 - 1]
            more = (memory - memory_before) >> 20
            print(f"{kind}: p99 {p99:.3f} s, longest {waits[-1]:.3f} s of {len(waits)}, {more} MiB more")
            assert p99 < time_limit(ANSWER_P99_S)
            assert waits[-1] < time_limit(ANSWER_S)
            assert memory - memory_before < MEMORY_MORE_MAX
            assert await timed(store_one, client, address) < time_limit(ANSWER_S)
            await memory_comes_back(broker, memory_before)
        finally:
            await client.close()
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    assert written < LOG_BYTES_MAX, f"{written} bytes of log"


@contextlib.asynccontextmanager
async def attack(kind: str, address: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """The attackers, while the block runs; they must have done something."""
    attackers = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.kit.hostile", kind, address.rpartition(":")[2], str(SECONDS),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield attackers
        assert attackers.stdout is not None
        totals = json.loads(await attackers.stdout.read())
        assert sum(totals.values()) > 0, totals
    finally:
        if attackers.returncode is None:
            attackers.kill()
        await attackers.wait()


async def probe(
    client: RemotingClient, address: str, broker: psutil.Process, attackers: asyncio.subprocess.Process
) -> tuple[list[float], int]:
    """What a modest client waits for each answer, seconds, none of which may be a refusal; the broker's memory at most.

    A request is timed from when it should have gone out: who waits for one answer does not hide what the next waited.
    """
    waits: list[float] = []
    memory = number = 0
    due = time.monotonic()
    while attackers.returncode is None:
        await (beat if number % BEAT_EACH == BEAT_EACH - 1 else store_one)(client, address)
        now = time.monotonic()
        waits.append(now - due)
        if number % BEAT_EACH == 0:
            memory = max(memory, anonymous_bytes(broker))
        number += 1
        due = max(due + PERIOD_S, now - 10 * PERIOD_S)
        await asyncio.sleep(due - time.monotonic())
    return waits, memory


async def memory_comes_back(broker: psutil.Process, before: int) -> None:
    deadline = time.monotonic() + time_limit(10)
    while (left := anonymous_bytes(broker) - before) > MEMORY_LEFT_MAX:
        assert time.monotonic() < deadline, f"{left >> 20} MiB are left"
        await asyncio.sleep(0.2)
