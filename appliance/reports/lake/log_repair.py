"""Takes away what a power cut left unfinished of a Delta log in a folder.

The invariant: a commit is synced after the files that it adds, and before anything relies on it. So if the newest
entry is torn, or names a file that is not there in its whole size, then it was never synced, no process has gone on
from it, and the table before it is whole. The same holds for a checkpoint: it only repeats entries that are there.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from appliance.settings.replaced_file import sync_path

logger = logging.getLogger(__name__)

LOG = "_delta_log"


def repair(table: Path) -> None:
    """Remove unfinished newest entries and checkpoints. Call it with the writers' lock held."""
    log = table / LOG
    removed = [*log.glob("*#*"), *log.glob("*.tmp")]  # what the library had not named yet
    for checkpoint in sorted(log.glob("*.checkpoint*.parquet"), reverse=True):
        if _is_readable(checkpoint):
            break
        removed += [checkpoint, log / "_last_checkpoint"]
    for entry in sorted(log.glob("*.json"), reverse=True):
        if _is_whole(entry, table):
            break
        removed += [entry, *log.glob(f"{entry.stem}.checkpoint*"), log / "_last_checkpoint"]
    for path in removed:
        path.unlink(missing_ok=True)
        logger.warning(
            "unfinished entry of the lake removed", extra={"event": "report_lake_repaired", "path": str(path)}
        )
    if removed:
        sync_path(log)


def _is_readable(checkpoint: Path) -> bool:
    try:
        pq.ParquetFile(checkpoint).read()
    except (OSError, pa.ArrowException):
        return False
    return True


def _is_whole(entry: Path, table: Path) -> bool:
    try:
        actions = [json.loads(line) for line in entry.read_bytes().splitlines()]
    except ValueError:
        return False
    added = [action["add"] for action in actions if "add" in action]
    return bool(actions) and all(_size(table / unquote(add["path"])) == add["size"] for add in added)


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.exists() else None
