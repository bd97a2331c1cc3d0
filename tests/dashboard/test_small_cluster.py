"""A master and its slave by `gantry up --slaves 1`: both copy and are shown, and the end of either is told."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import psutil

from gantrymq import Message, SyncProducer
from tests.appliance_process import RunningAppliance, command_of
from tests.waiting import wait_until

PROBLEM = re.compile(r"event=(problem|problem_gone) what='([^']*)'")
STORIES = {
    "broker-a-2": ("A slave of broker-a is disconnected", "Process broker-a-2 is "),
    "broker-a": ("Slave broker-a:1 does not copy", "Process broker-a is "),
}


def test_the_end_of_either_process_is_told(tmp_path: Path) -> None:
    log = tmp_path / "data" / "logs" / "gantry.log"
    copy = tmp_path / "data" / "brokers" / "broker-a-2" / "store" / "commitlog" / "00000000000000000000"
    with RunningAppliance(tmp_path / "data", "--slaves", "1") as gantry:
        with SyncProducer(gantry.namesrv) as producer:
            producer.send(Message("copied", b"to the slave"))
        wait_until(lambda: copy.exists() and b"to the slave" in _beginning(copy))
        for process, story in STORIES.items():
            wait_until(lambda: not _open_problems(log.read_text()))
            before = len(log.read_text())

            def is_told(process: str = process, story: tuple[str, ...] = story, before: int = before) -> bool:
                """Kill it, and again when it is back before the sampler has looked."""
                _kill(gantry, process)
                told = [what for _, what in PROBLEM.findall(log.read_text()[before:])]
                return all(any(what.startswith(sentence) for what in told) for sentence in story)

            wait_until(is_told)


def _open_problems(log: str) -> set[str]:
    """Of the brokers, as the Overview shows them now."""
    found: set[str] = set()
    for event, what in PROBLEM.findall(log):
        words = re.sub(r"\d+", "", what)
        (found.add if event == "problem" else found.discard)(words)
    return {words for words in found if "broker-a" in words}


def _kill(gantry: RunningAppliance, name: str) -> None:
    path = str(Path("brokers") / name / "broker.properties")
    for process in gantry.workers("broker"):
        with contextlib.suppress(psutil.NoSuchProcess):
            if path in command_of(process):
                process.kill()


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 16)
