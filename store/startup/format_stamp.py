"""Which format a folder has: a small file that says it, so that a program never works on what it does not know.

A folder written by a newer version is refused before anything in it is touched. One with an older format, or without a
stamp (from before there were stamps, or from RocketMQ), is brought up step by step; what a step rewrites is copied to
`before-format-<n>` in the same folder first, and stays there. A crash in between is no harm: copies that are there
already are the older ones and stay, steps may be done twice, and the stamp is written last.

A format's number rises only when an older program would misread what the newer one writes. RocketMQ takes no notice of
the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gantrymq import __version__
from store.base import file_bytes
from store.base.errors import NewerFormat, StampDamaged

logger = logging.getLogger(__name__)

STAMP_NAME = "gantry.format"
STAMP_BYTES_MAX = 4096


class Stamp(NamedTuple):
    """What a folder's stamp says; format 0 is a folder without one."""

    format: int
    written_by: str


@dataclass(frozen=True)
class Step:
    """How a folder comes from the format before to the next: `rewrites` lists the files that will not stay as they are.

    Done without `change`, when the programs that run on the folder change them in their own time.
    """

    rewrites: Callable[[Path], Iterable[Path]]
    change: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class FolderFormat:
    """A kind of folder; its format is the number of steps that led to it."""

    name: str  # in sentences: "the store", "the data folder"
    steps: tuple[Step, ...]

    @property
    def number(self) -> int:
        return len(self.steps)


def _tables_and_checkpoint(store: Path) -> Iterable[Path]:
    return [store / "checkpoint", *sorted((store / "config").glob("*.json"))]


STORE = FolderFormat("store", (Step(_tables_and_checkpoint),))


def read_stamp(folder: Path) -> Stamp:
    """Read a folder's stamp. StampDamaged when it does not tell the format."""
    path = folder / STAMP_NAME
    try:
        with path.open("rb") as file:
            stamp = json.loads(file.read(STAMP_BYTES_MAX))
        number, written_by = stamp["format"], stamp["writtenBy"]
    except FileNotFoundError:
        return Stamp(0, "")
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise StampDamaged(path, str(exc) or type(exc).__name__) from exc
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise StampDamaged(path, f"format {number!r} is not a number above 0")
    return Stamp(number, str(written_by))


def check_format(folder: Path, wanted: FolderFormat) -> Stamp:
    """Return the stamp of a folder that this program may work on. NewerFormat, StampDamaged. Changes nothing."""
    stamp = read_stamp(folder)
    if stamp.format > wanted.number:
        raise NewerFormat(folder, wanted.name, stamp.format, stamp.written_by, wanted.number)
    return stamp


def bring_up_to_date(folder: Path, wanted: FolderFormat) -> None:
    """See to it that the folder has this program's format. Blocks. NewerFormat, StampDamaged, OSError."""
    with _alone(folder):
        stamp = check_format(folder, wanted)
        if stamp.format == wanted.number:
            return
        for number, step in enumerate(wanted.steps[stamp.format :], stamp.format + 1):
            try:
                _take(folder, number, step)
            except OSError as exc:
                if step.change is not None:
                    raise
                # A full disk. The folder is as good as it was, and the next start tries again.
                logger.warning(
                    "folder not stamped",
                    extra={"event": "not_stamped", "folder": str(folder), "format": number, "error": str(exc)},
                )
                return


def _take(folder: Path, number: int, step: Step) -> None:
    """One step up: keep, change, stamp."""
    kept = _keep(folder, number, step.rewrites(folder))
    if step.change is not None:
        step.change(folder)
    write_stamp(folder, number)
    if kept:
        where = str(kept_folder(folder, number))
        logger.info(
            "format upgraded",
            extra={"event": "format_brought_up", "folder": str(folder), "format": number, "kept": where},
        )


def write_stamp(folder: Path, number: int, written_by: str = __version__) -> None:
    """Put the stamp there, whole or not at all, also when the power goes."""
    temporary = folder / f"{STAMP_NAME}.tmp"
    with temporary.open("w", encoding="ascii") as file:
        json.dump({"format": number, "writtenBy": written_by}, file)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / STAMP_NAME)
    file_bytes.sync_folder(folder)


def kept_folder(folder: Path, number: int) -> Path:
    """Where the step to that format kept what it rewrites."""
    return folder / f"before-format-{number}"


def _keep(folder: Path, number: int, paths: Iterable[Path]) -> int:
    """Copy the files that there are, and have the disk take the copies; return how many are kept now."""
    kept = 0
    for path in paths:
        if not path.is_file():
            continue
        kept += 1
        target = kept_folder(folder, number) / path.relative_to(folder)
        if target.exists():
            continue  # of a try before this one: the file itself may be half changed by now
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(target.name + ".tmp")
        shutil.copy2(path, temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        file_bytes.sync_folder(target.parent)
    return kept


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time, be it two reports that begin at once."""
    with file_bytes.closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
