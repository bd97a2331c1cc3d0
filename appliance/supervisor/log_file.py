"""A log file rotated by size, for the output of a child process, byte for byte."""

from __future__ import annotations

from pathlib import Path

from appliance.process.file_tail import read_tail

FILE_BYTES_MAX = 10 << 20
FILES_KEPT = 5


class LogFile:
    """Appends to `path`; a full file becomes path.1, path.1 becomes path.2, and the oldest is deleted."""

    def __init__(self, path: Path, *, bytes_max: int = FILE_BYTES_MAX, kept: int = FILES_KEPT) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._kept = kept
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size_bytes = self._file.tell()

    def write(self, data: bytes) -> None:
        if self._size_bytes and self._size_bytes + len(data) > self._bytes_max:
            self._rotate()
        self._file.write(data)
        self._size_bytes += len(data)

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for index in range(self._kept - 1, 0, -1):
            older = self._numbered(index)
            if older.exists():
                older.replace(self._numbered(index + 1))
        self.path.replace(self._numbered(1))
        self._file = self.path.open("ab", buffering=0)
        self._size_bytes = 0

    def _numbered(self, index: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{index}")


def tail(path: Path, *, lines: int = 12, bytes_max: int = 16_384) -> str:
    """The last lines of a log, shown when a process does not start."""
    return "\n".join(read_tail(path, bytes_max).splitlines()[-lines:])
