"""What one process prints: every byte goes to its log file, and its READY line is caught on the way.

The process must never wait for its log: when the file can't be written, what it prints is counted and left out, and
the log says so as soon as it can be written again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from appliance.supervisor.log_file import LogFile

READY_PREFIX = b"READY "
READY_LINE_BYTES_MAX = 65_536
PROGRESS_MARK = b"event=store_recovering"  # a store that tells how far it is does not hang


class Output:
    """Takes chunks. `ready_line` is what stood behind READY, `percent` how far recovery was when it last said so."""

    def __init__(self, log_path: Path) -> None:
        self.ready_line: str | None = None
        self.percent = ""
        self.progress_lines = 0
        self._log_path = log_path
        self._log: LogFile | None = None
        self._lost_bytes = 0
        self._unfinished = b""  # the beginning of a line

    def take(self, chunk: bytes) -> None:
        self.write(chunk)
        if self.ready_line is None:
            self._unfinished = self._look(self._unfinished + chunk)

    def begin_life(self) -> None:
        """The same log goes on, for the next process of this name."""
        self.ready_line, self.percent, self.progress_lines, self._unfinished = None, "", 0, b""

    def close(self) -> None:
        if self._log is not None:
            with contextlib.suppress(OSError):
                self._log.close()
            self._log = None

    def write(self, chunk: bytes) -> None:
        """To the log only."""
        try:
            if self._log is None:
                self._log = LogFile(self._log_path)
            if self._lost_bytes:
                self._log.write(b"(%d bytes of the log could not be written here)\n" % self._lost_bytes)
                self._lost_bytes = 0
            self._log.write(chunk)
        except OSError:  # told by the line above
            self._lost_bytes += len(chunk)
            self.close()  # it is opened anew: a rotation may have got half-way

    def _look(self, output: bytes) -> bytes:
        """Look through whole lines; return what still has to be looked at."""
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
