"""Clients that mean harm beside one that does not: it is answered, and the broker's memory stays bounded."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from gantrymq.errors import ResponseError
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import ResponseCode
from tests.conftest import time_limit
from tests.faults.test_overload import anonymous_bytes, beat, broker_process, store_one, timed
from tests.harness import LocalCluster

SECONDS = 3
ANSWER_S = 3.0  # the attackers share the machine with the broker and the probe
MEMORY_MORE_MAX = 800 * 1024 * 1024  # incomplete frames may take 512 MiB in all
LOG_BYTES_MAX = 4 << 20


@pytest.mark.parametrize("kind", ["come_and_go", "half_frames", "beats", "bombs", "headers"])
async def test_harm_stays_with_who_does_it(tmp_path: Path, kind: str) -> None:
    with LocalCluster(tmp_path) as cluster:
        address = cluster.broker_address
        client = RemotingClient()
        try:
            await store_one(client, address)
            broker = broker_process(tmp_path)
            memory_before = anonymous_bytes(broker)
            attack = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.hostile", kind, address.rpartition(":")[2], str(SECONDS),
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            sends: list[float] = []
            beats: list[float] = []
            memory = refused = 0
            while attack.returncode is None:
                for action, times in ((store_one, sends), (beat, beats)):
                    try:
                        times.append(await timed(action, client, address))
                    except ResponseError as exc:  # a moment of flow control is an answer, too
                        assert exc.code == ResponseCode.SYSTEM_BUSY, exc
                        refused += 1
                memory = max(memory, anonymous_bytes(broker))
                await asyncio.sleep(0.02)
            assert attack.stdout is not None
            totals = json.loads(await attack.stdout.read())
            more = (memory - memory_before) >> 20
            print(kind, totals, f"send {max(sends):.3f} s, heartbeat {max(beats):.3f} s, {more} MiB more")
            assert totals
            assert sends and beats
            assert refused <= (len(sends) + len(beats)) / 2
            assert max(sends) < time_limit(ANSWER_S)
            assert max(beats) < time_limit(ANSWER_S)
            assert memory - memory_before < MEMORY_MORE_MAX
            assert await timed(store_one, client, address) < time_limit(ANSWER_S)
        finally:
            await client.close()
    written = sum(path.stat().st_size for path in tmp_path.rglob("*.log"))
    assert written < LOG_BYTES_MAX, f"{written} bytes of log"
