"""How far the timer has come, for a restart: `<store>/timer/progress.json`.

A message is delivered if it stood in the timer's queue before `seen` and was due before `delivered_ms`. What stands
before `indexed` is in the slots' files or delivered; from there on a restart reads the queue again. Messages delivered
since the file was written are delivered again after a crash.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from appliance.process.json_file import JsonFile


class Progress(NamedTuple):
    """Offsets in the timer's queue, and a time in ms."""

    indexed: int = 0
    seen: int = 0
    delivered_ms: int = 0

    def has_delivered(self, due_ms: int, queue_offset: int) -> bool:
        return queue_offset < self.seen and due_ms < self.delivered_ms


class ProgressFile:
    """Reads and replaces the file. Blocks."""

    def __init__(self, path: Path) -> None:
        self._file = JsonFile(path)
        self._writes = 0

    def load(self) -> Progress:
        """Return what the file says, the beginning when there is none. StateFileError."""
        return self._file.load_as(_progress, "progress of the timer (without the file all is delivered again)") or (
            Progress()
        )

    def write(self, progress: Progress) -> None:
        """Replace the file durably. StateFileError."""
        self._writes += 1
        text = f'{{"indexed":{progress.indexed},"seen":{progress.seen},"deliveredMs":{progress.delivered_ms}}}\n'
        self._file.write(text.encode(), self._writes)


def _progress(document: dict[str, Any]) -> Progress:
    values = [document.get(name, 0) for name in ("indexed", "seen", "deliveredMs")]
    if not all(isinstance(value, int) and value >= 0 for value in values):
        raise ValueError("a number is missing or below zero")
    return Progress(*values)
