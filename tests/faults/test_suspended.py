"""A broker is suspended (SIGSTOP): the log of the appliance says so at once, and its own log afterwards."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path

import pytest

from appliance.settings.loader import load_broker_config
from gantrymq import Message, Producer, SendStatus
from gantrymq.errors import GantryError
from tests.appliance_process import RunningAppliance
from tests.conftest import time_limit
from tests.faults.conftest import USUAL_ROUNDS
from tests.faults.kit.ledger import messages
from tests.store.conftest import opened

PATIENCE_S = 60.0
TOLD_WITHIN_S = 2.0
BODY = bytes(1000)


async def seen(log: Path, pattern: str) -> str:
    """Wait for a line; return it."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := re.search(pattern, log.read_text(errors="replace"), re.MULTILINE)) is None:
        assert time.monotonic() < deadline, f"{log} does not say {pattern}"
        await asyncio.sleep(0.02)
    return found[0]


async def sends_again(producer: Producer) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await producer.send(Message("Suspended", BODY), timeout_s=2)
                return
            except GantryError:
                await asyncio.sleep(0.2)


async def sent(producer: Producer, count: int) -> int:
    results = [await producer.send(Message("Suspended", BODY)) for _ in range(count)]
    return sum(result.status is SendStatus.SEND_OK for result in results)


@pytest.mark.slow
async def test_a_suspended_broker_is_told_while_it_lasts_and_afterwards(tmp_path: Path, rounds: int) -> None:
    """With --rounds above the usual for a whole minute."""
    suspended_s = 60.0 if rounds > USUAL_ROUNDS else 4.0
    with RunningAppliance(tmp_path / "data") as gantry:
        logs = tmp_path / "data" / "logs"
        async with Producer(gantry.namesrv) as producer:
            assert await sent(producer, 20) == 20
        (broker,) = gantry.workers("broker")
        broker.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        try:
            line = await seen(logs / "gantry.log", r"^.*event=problem what=.*broker-a.*$")
            took_s = time.monotonic() - began
            for words in ("stopped by a signal", "does not answer"):
                await seen(logs / "gantry.log", rf"^.*event=problem what=.*{words}.*$")
            assert took_s < time_limit(TOLD_WITHIN_S), line
            # the fault lasts for its whole time, whenever it was told
            await asyncio.sleep(max(began + suspended_s - time.monotonic(), 0))
        finally:
            broker.send_signal(signal.SIGCONT)
        note = await seen(logs / "broker-a.log", r"^.*event=stood_still.*$")
        seconds = re.search(r"seconds=([\d.]+)", note)
        assert seconds is not None and float(seconds[1]) >= suspended_s - 1, note
        await seen(logs / "gantry.log", r"^.*event=problem_gone what=.*stopped by a signal.*$")
        await seen(logs / "gantry.log", r"^.*event=problem_gone what=.*does not answer.*$")
        assert broker.is_running() and broker.pid == gantry.workers("broker")[0].pid, "a pause is no reason to restart"
        async with Producer(gantry.namesrv) as producer:
            assert await sent(producer, 20) == 20


@pytest.mark.slow
async def test_a_store_that_is_cut_short_under_a_broker_is_named_and_comes_back(tmp_path: Path) -> None:
    """A look at pages that are not there any more ends a process (SIGBUS), as a disk's read error does."""
    with RunningAppliance(tmp_path / "data") as gantry:
        logs, store = tmp_path / "data" / "logs", tmp_path / "data" / "brokers" / "broker-a" / "store"
        async with Producer(gantry.namesrv) as producer:
            assert await sent(producer, 20) == 20
            (path,) = [path for path in (store / "commitlog").iterdir() if int(path.name) == 0]
            with path.open("r+b") as file:
                whole = file.read(1 << 20)
                size = path.stat().st_size
                file.truncate(4096)
                with pytest.raises(GantryError):
                    await producer.send(Message("Suspended", BODY), timeout_s=5)
                await seen(logs / "gantry.log", r"^.*event=process_ended.*killed by SIGBUS: a file of its store.*$")
                file.seek(0)
                file.write(whole)
                file.truncate(size)
            await sends_again(producer)
        config = load_broker_config(store.parent / "broker.properties")[1]
    reopened = opened(config)
    found = sum(len(list(messages(reopened, "Suspended", queue, 0))) for queue in reopened.queue_ids("Suspended"))
    reopened.close()
    assert found >= 21, "what was acknowledged before is there, and what came after"
