"""A child that recovers its store may take longer than a start, as long as it says how far it is.

The time that passes is the test's: its loop's clock is set ahead, and the child goes on when it is told to.
"""

from __future__ import annotations

import asyncio
import contextlib
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


@pytest.mark.parametrize("event", ["store_recovering", "something_else"])
async def test_each_line_of_progress_gives_the_child_its_time_anew_and_no_other_line(
    tmp_path: Path, guarded: Guarded, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    child, is_progress = child_that_says(f"event={event}", tmp_path, guarded), event == "store_recovering"
    await child.start()
    waiting, log = asyncio.create_task(child.wait_ready()), tmp_path / "log"

    def is_said(percent: str) -> bool:
        if is_progress:
            return child.facts.get("recovering_percent") == percent
        return log.exists() and f"percent={percent}" in log.read_text()

    for step in range(STEPS if is_progress else 2):
        await until(lambda percent=str(step * 20 + 20): waiting.done() or is_said(percent))  # type: ignore[misc]
        let_time_pass(monkeypatch)
        (tmp_path / str(step)).touch()
    with contextlib.nullcontext() if is_progress else pytest.raises(ChildNotReady):
        await waiting
    assert not is_progress or child.facts == {"role": "broker"}
    await child.stop(WITHIN_S)
