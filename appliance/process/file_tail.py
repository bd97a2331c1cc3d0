"""The end of a text file, for telling a person what a process said last."""

from __future__ import annotations

from pathlib import Path


def read_tail(path: Path, bytes_max: int) -> str:
    """Return the last `bytes_max` bytes of a file as text; "" when there is no such file."""
    try:
        with path.open("rb") as file:
            size_bytes = file.seek(0, 2)
            file.seek(max(0, size_bytes - bytes_max))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
