"""Hostile clients of a proxy beside one that is not: each of its calls is answered OK, and memory and log stay small.

Thirteen kinds of abuse, by forty connections each, from the same address.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from appliance.bench.gantry_peer import FAST_PATH_OFF
from appliance.proxy.protocol.definition_pb2 import Code
from tests.appliance.proxy.proxies import ProxyClient, require_compiled_door
from tests.conftest import is_busy, time_limit
from tests.faults.grpc.hostile_calls import KINDS
from tests.faults.grpc.proxy_process import proxy_process
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S

SECONDS = 2
PERIOD_S = 0.02
ANSWER_S = 3.0
MEMORY_MORE_MAX = 400 << 20  # of messages that are coming in, 128 MiB are taken in all
LOG_BYTES_MAX = 2 << 20


@pytest.mark.parametrize("door", [{}, FAST_PATH_OFF], ids=["nghttp2", "grpclib"])
@pytest.mark.parametrize("kind", list(KINDS))
async def test_polite_calls_are_answered(tmp_path: Path, kind: str, door: dict[str, str]) -> None:
    if not door:
        require_compiled_door()
    log = tmp_path / "proxy.log"
    with (
        LocalCluster(tmp_path) as cluster,
        proxy_process(cluster.namesrv_address, log, environment=door) as (process, port),
    ):
        client = ProxyClient(port)
        try:
            await store_one(client)
            before = psutil.Process(process.pid).memory_info().rss
            attackers = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.grpc.hostile_calls", kind, str(port), str(SECONDS),
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            ended = asyncio.create_task(attackers.communicate())
            waits = []
            while not ended.done():
                began = time.monotonic()
                await store_one(client)
                waits.append(time.monotonic() - began)
                await asyncio.sleep(PERIOD_S)
            totals = json.loads((await ended)[0])
            more = psutil.Process(process.pid).memory_info().rss - before
            print(f"{kind}: {totals}, {len(waits)} answers, longest {max(waits):.3f} s, {more >> 20} MiB more")
            assert totals["connections"] >= 40
            assert max(waits) < time_limit(ANSWER_S)
            assert more < MEMORY_MORE_MAX
            assert log.stat().st_size < LOG_BYTES_MAX
            assert "Traceback" not in log.read_text(errors="replace")[:LOG_BYTES_MAX]
        finally:
            client.channel.close()


async def store_one(client: ProxyClient) -> None:
    """A busy machine's broker may answer the proxy too late: then a client sends again."""
    codes = {Code.OK, Code.TOPIC_NOT_FOUND}
    while True:
        message = client.message("BenchmarkTest", os.urandom(64))
        message.topic.name = "orders"
        answer = await client.call("SendMessage", messages=[message], timeout_s=WITHIN_S)
        if answer.status.code in codes:
            return
        assert answer.status.code == Code.PROXY_TIMEOUT and is_busy(), answer
