"""From the command to the first message that the new master takes: our clients find it as soon as it is there.

pytest tests/faults/replication/test_switch_over.py -s --rounds 30
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gantrymq import (
    AdminClient,
    ConsumeResult,
    Message,
    MessageExt,
    Producer,
    PullConsumer,
    PushConsumer,
    SendResult,
    SyncProducer,
)
from gantrymq.client.admin.calls import AdminCalls
from gantrymq.errors import GantryError
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.remoting.codes import RequestCode
from tests.conftest import time_limit
from tests.faults.kit.replicas import ASYNC, TOPIC, replicated
from tests.harness import LocalCluster
from tests.waiting import until

ROUNDS = 2
WORST_S = 4.0  # beside a busy machine; what was promised, p99 of 2 s, is for a person with a quiet one
SWITCH_S, CATCH_UP_S = 12.0, 4.0
SETTLE_S = 0.3  # of traffic between two


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[LocalCluster]]:
    with replicated(tmp_path, ASYNC, slaves=1) as members:
        yield members


class Found:
    """When each client first met each broker in a round, monotonic."""

    def __init__(self) -> None:
        self.at: dict[tuple[str, int], float] = {}
        self.failures: list[str] = []

    def note(self, client: str, offset_msg_id: str) -> None:
        _host, port, _offset = decode_offset_message_id(offset_msg_id.split(",")[0])
        self.at.setdefault((client, port), time.monotonic())

    async def keep(self, client: str, send: Callable[[], Awaitable[SendResult]]) -> None:
        """Send for ever, as an application that gives up no message."""
        while True:
            try:
                self.note(client, (await send()).offset_msg_id)
            except GantryError as exc:
                self.failures.append(f"{client}: {exc!r}")
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def clients(name_server: str, found: Found) -> AsyncIterator[list[str]]:
    """One of each kind, all busy; yields their names."""

    async def listener(messages: list[MessageExt]) -> ConsumeResult:
        for message in messages:
            found.note("push consumer", message.offset_msg_id)
        return ConsumeResult.SUCCESS

    async def poll(consumer: PullConsumer) -> None:
        async for message in consumer:
            found.note("pull consumer", message.offset_msg_id)

    async with contextlib.AsyncExitStack() as stack:
        producer = await stack.enter_async_context(Producer(name_server))
        blocking = stack.enter_context(SyncProducer(name_server))
        push = PushConsumer(name_server, group="pushed", listener=listener)
        push.subscribe(TOPIC)
        pull = PullConsumer(name_server, group="pulled")
        subscribed: Any = pull.subscribe(TOPIC)
        if inspect.isawaitable(subscribed):
            await subscribed
        await stack.enter_async_context(push)
        await stack.enter_async_context(pull)
        tasks = [
            asyncio.create_task(found.keep("producer", lambda: producer.send(Message(TOPIC, b"x")))),
            asyncio.create_task(found.keep("blocking", lambda: asyncio.to_thread(blocking.send, Message(TOPIC, b"x")))),
            asyncio.create_task(poll(pull)),
        ]
        try:
            yield ["producer", "blocking", "push consumer", "pull consumer"]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.slow
async def test_clients_find_the_new_master_at_once(pair: list[LocalCluster], request: pytest.FixtureRequest) -> None:
    rounds = request.config.getoption("--rounds", default=None) or ROUNDS
    found, took, commands = Found(), dict[str, list[float]](), list[float]()
    master, slave = pair
    async with clients(master.namesrv_address, found) as names, AdminClient(master.namesrv_address) as admin:
        await until(lambda: {name for name, _port in found.at} == set(names))
        for _ in range(rounds):
            found.at.clear()
            began = time.monotonic()
            changed = await admin.succession.switch_over(*await admin.succession.switch(master.broker_name))
            commands.append(changed.seconds)
            port = int(slave.broker_address.rpartition(":")[2])
            await until(lambda port=port: all((name, port) in found.at for name in names))  # type: ignore[misc]
            for name in names:
                took.setdefault(name, []).append(found.at[name, port] - began)
            master, slave = slave, master
            await asyncio.sleep(SETTLE_S)  # traffic in the new roles
    print(f"\n{rounds} rounds; the command itself: {told(commands)}")
    for name in names:
        print(f"  {name:14} {told(took[name])}")
    assert not found.failures, found.failures[:5]
    assert max(took["producer"] + took["blocking"]) < time_limit(WORST_S)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["master", "slave"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("is_held", [False, True])
async def test_a_switch_over_ends_in_time_whoever_is_lost(
    pair: list[LocalCluster], monkeypatch: pytest.MonkeyPatch, victim: str, blow: signal.Signals, is_held: bool
) -> None:
    monkeypatch.setattr("gantrymq.client.admin.succession.SWITCH_S", SWITCH_S)
    monkeypatch.setattr("gantrymq.client.admin.succession.CATCH_UP_S", CATCH_UP_S)
    master, slave = pair
    process = (master if victim == "master" else slave).broker
    code = RequestCode.PROMOTE_SLAVE if is_held else RequestCode.HOLD_MESSAGES
    async with AdminClient(master.namesrv_address, timeout_s=60) as admin:
        planned = await admin.succession.switch(master.broker_name)
        call = AdminCalls.call

        async def struck(calls: AdminCalls, address: str, asked: int, *rest: Any, **more: Any) -> Any:
            if asked == code:
                os.kill(process.pid, blow)
            return await call(calls, address, asked, *rest, **more)

        monkeypatch.setattr(AdminCalls, "call", struck)
        began = time.monotonic()
        try:
            with contextlib.suppress(GantryError):
                await admin.succession.switch_over(*planned)
            assert time.monotonic() - began < SWITCH_S + time_limit(10)
        finally:
            os.kill(process.pid, signal.SIGCONT if blow == signal.SIGSTOP else 0)
    if victim == "slave" and not is_held:
        sent = time.monotonic()
        async with Producer(master.namesrv_address) as producer:
            await producer.send(Message(TOPIC, b"goes on"), timeout_s=60)
        assert time.monotonic() - sent < time_limit(5), "the master was told to go on"


def told(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    return f"median {statistics.median(ordered):.2f} s, p99 {p99:.2f} s, worst {ordered[-1]:.2f} s"
