"""A burst is slowed down and not refused: whatever the machine, no send fails and every one-way message is stored.

Programs that were not written here met refusals where a request took 220 us instead of 10, so the machine is made slow:
the broker is stopped for nine tenths of the time, shares one core with six busy loops, or stands still for five
seconds. Beside the burst a modest client is answered; what it waits for is the machine, so its bound is wide.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from appliance.bench import rpc
from gantrymq.client.produce.producer import Producer
from gantrymq.message.model import Message
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.conftest import time_limit
from tests.faults.kit.broker_process import broker_process
from tests.faults.kit.burst import QUEUES, TOPIC
from tests.faults.kit.modest_client import beat, store_one, timed
from tests.harness import LocalCluster

STANDSTILL_S = 5.0
ANSWER_S = 3.0  # where the process works at all
DUTY_S = (0.09, 0.01)  # stopped, going

Machine = Callable[[psutil.Process], contextlib.AbstractAsyncContextManager[None]]


@contextlib.asynccontextmanager
async def calm(_broker: psutil.Process) -> AsyncIterator[None]:
    yield


@contextlib.asynccontextmanager
async def a_tenth_of_a_core(broker: psutil.Process) -> AsyncIterator[None]:
    async def hold_back() -> None:
        while True:
            broker.send_signal(signal.SIGSTOP)
            await asyncio.sleep(DUTY_S[0])  # the fault: it has no core for so long
            broker.send_signal(signal.SIGCONT)
            await asyncio.sleep(DUTY_S[1])  # and then has one for so long

    task = asyncio.create_task(hold_back())
    try:
        yield
    finally:
        task.cancel()
        broker.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def beside_six_busy_loops(broker: psutil.Process) -> AsyncIterator[None]:
    core = min(os.sched_getaffinity(0))
    hogs = [psutil.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        for process in (broker, *hogs):
            process.cpu_affinity([core])
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@contextlib.asynccontextmanager
async def standing_still(broker: psutil.Process) -> AsyncIterator[None]:
    async def stop_once() -> None:
        await asyncio.sleep(0.1)  # the burst is under way
        broker.send_signal(signal.SIGSTOP)
        await asyncio.sleep(STANDSTILL_S)  # the fault
        broker.send_signal(signal.SIGCONT)

    task = asyncio.create_task(stop_once())
    try:
        yield
        await task
    finally:
        broker.send_signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("machine", "connections", "count"),
    [
        (calm, 1, 20_000),
        (calm, 400, 20_000),
        (a_tenth_of_a_core, 1, 4_000),
        (a_tenth_of_a_core, 400, 4_000),
        (beside_six_busy_loops, 16, 5_000),
        (standing_still, 1, 20_000),
        (standing_still, 64, 20_000),
    ],
)
async def test_none_fails_and_all_are_stored(tmp_path: Path, machine: Machine, connections: int, count: int) -> None:
    with LocalCluster(tmp_path) as cluster:
        address = cluster.broker_address
        rpc.create_topic(address, TOPIC, len(QUEUES))
        rpc.create_topic(address, "Flood", 1)
        client = RemotingClient()
        broker = broker_process(tmp_path)
        try:
            async with machine(broker), burst(address, connections, count) as program:
                answers, waits = await probe(client, address, program)
                assert answers == {"0": count}
                await all_stored(address, 2 * count)
        finally:
            await client.close()
        figures = rpc.ask(address, 28).body.decode()
        print(connections, f"longest answer {max(waits):.3f} s of {len(waits)}")
        for what in ("Rejected", "Expired", "OnewayRefused"):
            assert f'"sendThreadPoolQueue{what}":"0"' in figures
        allowed = time_limit(ANSWER_S) + (STANDSTILL_S if machine is standing_still else 0)
        assert max(waits) < allowed


@pytest.mark.parametrize("machine", [calm, a_tenth_of_a_core])
async def test_our_own_producer_gathers_sends_and_none_fails(tmp_path: Path, machine: Machine) -> None:
    """It met refusals, too: of a list of 20 000, and of sends that a program makes at once."""
    count, at_once = (20_000, 8_000) if machine is calm else (4_000, 2_000)
    with LocalCluster(tmp_path) as cluster:
        rpc.create_topic(cluster.broker_address, TOPIC, len(QUEUES))
        async with (
            Producer(cluster.namesrv_address, delivery_timeout_s=60) as producer,
            machine(broker_process(tmp_path)),
        ):
            sent = await producer.send_many([Message(TOPIC, b"x" * 900) for _ in range(count)])
            gathered = await asyncio.gather(*(producer.send(Message(TOPIC, b"x" * 900)) for _ in range(at_once)))
        assert len(sent) + len(gathered) == count + at_once
        await all_stored(cluster.broker_address, count + at_once)


@contextlib.asynccontextmanager
async def burst(address: str, connections: int, count: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """The program, from when it is connected."""
    arguments = address.rpartition(":")[2], str(connections), str(count), str(count)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.faults.kit.burst", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert program.stdout is not None
        assert await program.stdout.readline() == b"started\n"
        yield program
        assert program.stdin is not None
        program.stdin.close()
        assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def pull(client: RemotingClient, address: str) -> None:
    """One message of the topic that the modest client sends to."""
    fields = {
        "consumerGroup": "Modest", "topic": "Flood", "queueId": "0", "queueOffset": "0", "maxMsgNums": "1",
        "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0",
        "expressionType": "TAG",
    }  # fmt: skip
    answer = await client.invoke(address, RemotingCommand.request(RequestCode.PULL_MESSAGE, fields), timeout_s=30)
    assert answer.code == ResponseCode.SUCCESS and answer.body


async def probe(
    client: RemotingClient, address: str, program: asyncio.subprocess.Process
) -> tuple[dict[str, int], list[float]]:
    """Sends, heartbeats and pulls of a modest client until the burst is answered: its codes; seconds waited."""
    actions: tuple[Callable[[RemotingClient, str], Awaitable[None]], ...] = (store_one, beat, pull)
    assert program.stdout is not None
    answered = asyncio.create_task(program.stdout.readline())
    waits: list[float] = []
    while not answered.done():
        for action in actions:
            waits.append(await timed(action, client, address))
        await asyncio.sleep(0.02)
    return json.loads(await answered), waits


async def all_stored(address: str, count: int) -> None:
    """One-way messages tell nobody when they are stored."""
    deadline = time.monotonic() + 120
    while (stored := sum(await asyncio.to_thread(rpc.max_offsets, address, TOPIC, len(QUEUES)))) < count:
        assert time.monotonic() < deadline, f"{stored} of {count}"
        await asyncio.sleep(0.1)
    assert stored == count
