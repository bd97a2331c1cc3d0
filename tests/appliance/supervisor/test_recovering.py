"""A child that recovers its store may take longer than a start, as long as it says how far it is."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from appliance.supervisor.child import Child, ChildNotReady, ChildSpec
from tests.appliance.supervisor.guarded import Guarded

SCRIPT = """
import time
for step in range(7):
    print("2026-11-21 INFO store.log.scan  store recovering  {event} percent=%d" % (step * 20), flush=True)
    time.sleep(0.5)
print('READY {{"role": "broker"}}', flush=True)
time.sleep(60)
"""


def child_that_says(event: str, log: Path, guarded: Guarded) -> Child:
    command = (sys.executable, "-c", SCRIPT.format(event=event))
    spec = ChildSpec(name="broker-a", role="broker", command=command, ready_timeout_s=3.0)
    return Child(spec, guarded.link, stage=0, log_path=log)


async def test_each_line_of_progress_gives_the_child_its_time_anew(tmp_path: Path) -> None:
    async with Guarded() as guarded:
        child = child_that_says("event=store_recovering", tmp_path / "log", guarded)
        await child.start()
        waiting = asyncio.create_task(child.wait_ready())
        async with asyncio.timeout(30):
            while not waiting.done() and int(child.facts.get("recovering_percent", 0)) < 40:
                await asyncio.sleep(0.01)
        await waiting
        assert child.facts == {"role": "broker"}
        await child.stop(1.0)


async def test_a_child_that_says_something_else_is_not_waited_for(tmp_path: Path) -> None:
    async with Guarded() as guarded:
        child = child_that_says("event=something_else", tmp_path / "log", guarded)
        await child.start()
        with pytest.raises(ChildNotReady):
            await child.wait_ready()
        await child.stop(1.0)
