"""How far each slave was, a row for each minute: what the dashboard samples, on its way to the lake. No Spark.

    DATA/dashboard/samples/slaves-YYYY-MM-DD.jsonl    rows in the order of their minutes; a day of UTC a file

One process appends; a line that a crash tore is left out by readers. Report runs copy the rows to the lake
(runner/sample_table.py).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

MINUTE_MS = 60_000
DAY_MS = 86_400_000
KEPT_DAYS = 30  # as the dashboard's own history


@dataclass(frozen=True, slots=True, kw_only=True)
class SlaveSample:
    """One slave in one minute. The differences are the largest of the minute; behind_messages: None when not known.

    in_sync: all the time. bytes_per_second: what it was fed, mean. seconds: for how many it was seen connected.
    """

    at_ms: int
    broker: str
    slave: str
    behind_bytes: int
    behind_messages: int | None
    behind_seconds: float
    in_sync: bool
    bytes_per_second: float
    seconds: int


def append(data: Path, samples: Sequence[SlaveSample]) -> None:
    """Add the rows of one minute; what is too old goes. Blocks. Raises OSError."""
    folder = _folder(data)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _file_name(samples[0].at_ms)
    is_new = not path.exists()
    with path.open("a+b") as file:
        if file.tell() and not _ends_whole(path):
            file.write(b"\n")
        file.write(b"".join(json.dumps(asdict(sample)).encode() + b"\n" for sample in samples))
    if is_new:
        oldest = _file_name(samples[0].at_ms - KEPT_DAYS * DAY_MS)
        for old in folder.glob("slaves-*.jsonl"):
            if old.name < oldest:
                old.unlink(missing_ok=True)


def read(data: Path, begin_ms: int) -> list[SlaveSample]:
    """All rows of minutes that begin at `begin_ms` or later, in order."""
    first = _file_name(max(begin_ms, 0))
    paths = sorted(path for path in _folder(data).glob("slaves-*.jsonl") if path.name >= first)
    found = [sample for path in paths for sample in _samples_of(path) if sample.at_ms >= begin_ms]
    return sorted(found, key=lambda sample: sample.at_ms)


def _samples_of(path: Path) -> Iterator[SlaveSample]:
    for line in path.read_bytes().splitlines():
        try:
            yield SlaveSample(**json.loads(line))
        except (ValueError, TypeError):
            if line:
                logger.warning("a sample of slaves is torn", extra={"event": "slave_sample_torn", "path": str(path)})


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _folder(data: Path) -> Path:
    return data / "dashboard" / "samples"


def _file_name(at_ms: int) -> str:
    return time.strftime("slaves-%Y-%m-%d.jsonl", time.gmtime(at_ms / 1000))
