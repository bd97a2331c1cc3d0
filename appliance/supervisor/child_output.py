"""The output of one process: every byte goes to its log file, and READY and progress lines are recognised.

The process must never block on its log: when the file can't be written, its output is dropped and counted, and the log
gets that number as soon as it can be written again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from appliance.supervisor.log_file import LogFile

READY_PREFIX = b"READY "
READY_LINE_BYTES_MAX = 65_536
PROGRESS_MARK = b"event=store_recovering"  # a store that reports progress does not hang


class ChildOutput:
    """Takes chunks. `ready_line` is the text after READY, `percent` the last progress of recovery."""

    def __init__(self, log_path: Path) -> None:
        self.ready_line: str | None = None
        self.percent = ""
        self.progress_lines = 0
        self._log_path = log_path
        self._log: LogFile | None = None
        self._lost_bytes = 0
        self._unfinished = b""  # the last line, as far as it has arrived

    def take(self, chunk: bytes) -> None:
        self.write(chunk)
        if self.ready_line is None:
            self._unfinished = self._look(self._unfinished + chunk)

    def begin_life(self) -> None:
        """Reset the state for the next process of this name; its output goes to the same log."""
        self.ready_line, self.percent, self.progress_lines, self._unfinished = None, "", 0, b""

    def close(self) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError):
                self._log.close()
            self._log = None

    def write(self, chunk: bytes) -> None:
        """Write to the log, without looking for READY."""
        try:
            if self._log is None:
                self._log = LogFile(self._log_path)
            if self._lost_bytes:
                self._log.write(b"(%d bytes of the log could not be written here)\n" % self._lost_bytes)
                self._lost_bytes = 0
            self._log.write(chunk)
        except OSError:  # the next successful write reports it
            self._lost_bytes += len(chunk)
            self.close()  # and open again: a rotation may have failed half-way

    def _look(self, output: bytes) -> bytes:
        """Examine the complete lines; return the incomplete rest."""
        *lines, rest = output.split(b"\n")
        for line in lines:
            if PROGRESS_MARK in line:
                words = dict(word.split("=", 1) for word in line.decode(errors="replace").split() if "=" in word)
                self.percent = words.get("percent", "")
                self.progress_lines += 1
            if line.startswith(READY_PREFIX):
                self.ready_line = line.removeprefix(READY_PREFIX).decode(errors="replace")
                return b""
        return rest[-READY_LINE_BYTES_MAX:]
