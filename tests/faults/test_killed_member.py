"""A member of an ordered group dies: another goes on with its queues within seconds, in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gantrymq import ConsumeFrom, Message, PushConsumer
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.produce.producer import Producer
from gantrymq.message.model import MessageExt
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.conftest import time_limit
from tests.gantrymq.client.seen import until
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S

GROUP = "ordered-readers"
MEMBER = """
import asyncio, sys
from gantrymq import ConsumeFrom, PushConsumer

async def main():
    def listener(messages):
        for message in messages:
            print(message.body.decode(), flush=True)
    consumer = PushConsumer(
        sys.argv[1], group=sys.argv[2], listener=listener, ordered=True, consume_from=ConsumeFrom.FIRST_OFFSET
    )
    consumer.subscribe("orders")
    async with consumer:
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_queues_of_a_killed_member_go_on_within_seconds(tmp_path: Path) -> None:
    """RocketMQ's way takes 34 to 60 s: until the locks have expired and somebody asks again."""
    seen: list[bytes] = []

    def listener(messages: list[MessageExt]) -> None:
        seen.extend(message.body for message in messages)

    with LocalCluster(tmp_path) as cluster:
        heir = PushConsumer(
            cluster.namesrv_address, group=GROUP, listener=listener, ordered=True, consume_from=ConsumeFrom.FIRST_OFFSET
        )
        heir.subscribe("orders")
        async with AdminClient(cluster.namesrv_address) as admin, Producer(cluster.namesrv_address) as producer:
            await admin.topics.create_at(cluster.broker_address, TopicConfig("orders", 4, 4))
            await producer.send(Message("orders", b"hello"), sharding_key="k")
            with member(cluster) as killed:
                assert await asyncio.to_thread(killed.stdout.readline)
                async with heir:
                    await until_members(admin, cluster, 2)
                    killed.send_signal(signal.SIGKILL)
                    killed_at = time.monotonic()
                    sent = [b"after-%d" % number for number in range(12)]
                    for number, body in enumerate(sent):
                        await producer.send(Message("orders", body), sharding_key=f"key-{number}")
                    await until(lambda: set(sent) <= set(seen), within_s=WITHIN_S)
                    assert time.monotonic() - killed_at < time_limit(15)


@contextlib.contextmanager
def member(cluster: LocalCluster) -> Iterator[Any]:
    """A consumer in a process of its own, that prints what it consumed."""
    command = [sys.executable, "-c", MEMBER, cluster.namesrv_address, GROUP]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def until_members(admin: AdminClient, cluster: LocalCluster, count: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while len((await admin.clients.consumers_at(cluster.broker_address, GROUP)).connection_set) != count:
            await asyncio.sleep(0.05)
