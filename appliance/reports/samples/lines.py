"""Samples in files, a line of JSON each, until a report run copies them to the lake (runner/sample_table.py).

    DATA/dashboard/samples/KIND-YYYY-MM-DD.jsonl    rows in the order of their minutes; a day of UTC a file

One process appends; a line that a crash tore is left out by readers.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from appliance.reports.samples.kinds import Row, SampleKind

logger = logging.getLogger(__name__)

MINUTE_MS = 60_000
DAY_MS = 86_400_000


def append(data: Path, kind: SampleKind[Row], rows: Sequence[Row]) -> None:
    """Add the rows of one minute; what is too old goes. Blocks. Raises OSError."""
    folder = _folder(data)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _file_name(kind, rows[0].at_ms)
    is_new = not path.exists()
    with path.open("a+b") as file:
        if file.tell() and not _ends_whole(path):
            file.write(b"\n")
        file.write(b"".join(json.dumps(asdict(row)).encode() + b"\n" for row in rows))
    if is_new:
        oldest = _file_name(kind, rows[0].at_ms - kind.kept_days * DAY_MS)
        for old in _files(data, kind):
            if old.name < oldest:
                old.unlink(missing_ok=True)


def read(data: Path, kind: SampleKind[Row], begin_ms: int) -> list[Row]:
    """All rows of minutes that begin at `begin_ms` or later, in order."""
    first = _file_name(kind, max(begin_ms, 0))
    paths = [path for path in _files(data, kind) if path.name >= first]
    found = [row for path in paths for row in _rows_of(path, kind) if row.at_ms >= begin_ms]
    return sorted(found, key=lambda row: row.at_ms)


def _rows_of(path: Path, kind: SampleKind[Row]) -> Iterator[Row]:
    """The whole lines; what an older version wrote may have fields that the rows have no more."""
    names = {field.name for field in fields(kind.row)}
    for line in path.read_bytes().splitlines():
        try:
            yield kind.row(**{name: value for name, value in json.loads(line).items() if name in names})
        except (ValueError, TypeError, AttributeError):
            if line:
                logger.warning("a sample is torn", extra={"event": "sample_torn", "path": str(path)})


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _files(data: Path, kind: SampleKind[Row]) -> list[Path]:
    return sorted(_folder(data).glob(f"{kind.name}-*.jsonl"))


def _folder(data: Path) -> Path:
    return data / "dashboard" / "samples"


def _file_name(kind: SampleKind[Row], at_ms: int) -> str:
    return time.strftime(f"{kind.name}-%Y-%m-%d.jsonl", time.gmtime(at_ms / 1000))
