"""The broker's process among a test's children, and its memory."""

from __future__ import annotations

from pathlib import Path

import psutil

from tests.appliance_process import command_of


def broker_process(folder: Path) -> psutil.Process:
    """The broker among this test's children."""
    for child in psutil.Process().children(recursive=True):
        command = command_of(child)
        if " broker " in command and str(folder) in command:
            return child
    raise AssertionError("no broker process")


def anonymous_bytes(process: psutil.Process) -> int:
    """Memory of its own, without the store's mapped files."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("this kernel tells no RssAnon")
