"""Many connections and many topics at once: what each process holds then, and that all of it still works.

    python -m tests.bench.many [--connections 2000] [--topics 10000]

Producers with a connection each share the topics among them and stay connected; each topic gets one message. Then a
message goes through every connection again, the dashboard lists the topics, and the store is verified. Memory is PSS.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path

from gantrymq import AdminClient, Message, Producer, TopicConfig
from tests.appliance_process import RunningAppliance
from tests.visitor import admin_of

AT_ONCE = 50


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.many")
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=10_000)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gantry-many-") as name:
        with RunningAppliance(Path(name) / "data", "--proxies", "0") as gantry:
            visitor = admin_of(gantry)
            _say(gantry, "started")
            asyncio.run(_drive(gantry, given.connections, given.topics))
            began = time.monotonic()
            listed = visitor.get("/topics?q=many-9")
            print(f"the page of topics, filtered: {listed.status}, {time.monotonic() - began:.2f} s")
            assert listed.status == 200 and "many-9" in listed.text
        store = Path(name) / "data" / "brokers" / "broker-a" / "store"
        command = [sys.executable, "-m", "appliance", "store", "verify", str(store)]
        print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


async def _drive(gantry: RunningAppliance, connections: int, topics: int) -> None:
    names = [f"many-{number}" for number in range(topics)]
    async with AdminClient(gantry.namesrv) as admin:
        began = time.monotonic()
        await _few_at_once([admin.topics.create(TopicConfig(topic, 1, 1)) for topic in names])
        print(f"{topics} topics created in {time.monotonic() - began:.1f} s")
    _say(gantry, f"{topics} topics")
    producers = [Producer(gantry.namesrv, group=f"many-{number}") for number in range(connections)]
    try:
        await _few_at_once([producer.start() for producer in producers])
        began = time.monotonic()
        await _few_at_once(
            [producers[number % connections].send(Message(topic, b"once")) for number, topic in enumerate(names)]
        )
        print(f"{topics} messages acknowledged in {time.monotonic() - began:.1f} s, one of each topic")
        began = time.monotonic()
        await _few_at_once(
            [producer.send(Message(names[number % topics], b"again")) for number, producer in enumerate(producers)]
        )
        print(f"{connections} more, one of each connection, in {time.monotonic() - began:.1f} s")
        (broker,) = gantry.workers("broker")
        clients = sum(one.status == "ESTABLISHED" for one in broker.net_connections("tcp"))
        print(f"the broker has {clients} connections")
        assert clients >= connections
        _say(gantry, f"{connections} connections")
    finally:
        await _few_at_once([producer.close() for producer in producers])


async def _few_at_once(calls: Sequence[Awaitable[object]]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(call: Awaitable[object]) -> None:
        async with gate:
            await call

    await asyncio.gather(*map(one, calls))


def _say(gantry: RunningAppliance, when: str) -> None:
    roles = {role: gantry.workers(role) for role in ("namesrv", "broker")} | {"web": [gantry.web]}
    held = {role: sum(process.memory_full_info().pss for process in found) / 2**20 for role, found in roles.items()}
    print(f"{when}: " + ", ".join(f"{role} {mib:.0f} MiB" for role, mib in held.items()), flush=True)


if __name__ == "__main__":
    main()
