"""A child that recovers its store may take longer than a start, as long as it says how far it is.

The time that passes is the test's: its loop's clock is set ahead, and the child goes on when it is told to.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from appliance.supervisor.child import Child, ChildNotReady, ChildSpec
from tests.appliance.supervisor.guarded import Guarded
from tests.waiting import WITHIN_S, until

READY_TIMEOUT_S = 3 * WITHIN_S
PASSED_S = 2 * WITHIN_S  # less than the timeout; twice as much is more
STEPS = 3
SCRIPT = """
import pathlib, sys, time
for step in range(3):
    print("2026-11-21 INFO store.log.scan  store recovering  {event} percent=%d" % (step * 20 + 20), flush=True)
    while not pathlib.Path(sys.argv[1], str(step)).exists():
        time.sleep(0.01)
print('READY {{"role": "broker"}}', flush=True)
time.sleep(600)
"""


def child_that_says(event: str, folder: Path, guarded: Guarded) -> Child:
    command = (sys.executable, "-c", SCRIPT.format(event=event), str(folder))
    spec = ChildSpec(name="broker-a", role="broker", command=command, ready_timeout_s=READY_TIMEOUT_S)
    return Child(spec, guarded.link, stage=0, log_path=folder / "log")


def let_time_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    real = loop.time
    monkeypatch.setattr(loop, "time", lambda: real() + PASSED_S)


async def test_each_line_of_progress_gives_the_child_its_time_anew(
    tmp_path: Path, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = child_that_says("event=store_recovering", tmp_path, guarded)
    await child.start()
    waiting = asyncio.create_task(child.wait_ready())
    for step in range(STEPS):
        percent = str(step * 20 + 20)
        await until(lambda percent=percent: waiting.done() or child.facts.get("recovering_percent") == percent)
        let_time_pass(monkeypatch)
        (tmp_path / str(step)).touch()
    await waiting
    assert child.facts == {"role": "broker"}
    await child.stop(WITHIN_S)


async def test_a_child_that_says_something_else_is_not_waited_for(
    tmp_path: Path, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = child_that_says("event=something_else", tmp_path, guarded)
    await child.start()
    waiting = asyncio.create_task(child.wait_ready())
    log = tmp_path / "log"
    for step in range(2):
        said = f"percent={step * 20 + 20}"
        await until(lambda said=said: waiting.done() or (log.exists() and said in log.read_text()))
        let_time_pass(monkeypatch)
        (tmp_path / str(step)).touch()
    with pytest.raises(ChildNotReady):
        await waiting
    await child.stop(WITHIN_S)
