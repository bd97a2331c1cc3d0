"""What one backup holds. The file is written last and replaced whole: a folder without one is no backup."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from appliance.settings.replaced_file import sync_path
from gantrymq.errors import GantryError

NAME = "manifest.json"
CONTENT = "data"  # the folder beside it, laid out as the data folder
FORMAT = 1


class BackupError(GantryError):
    """A backup can't be made or used; the text says why, and what to do."""


def local_folder(text: str) -> Path:
    """A folder that a command names. Raises ArgumentTypeError for an address, which would be taken for a name."""
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text} is an address: name a folder, and copy the backup there yourself")
    return Path(text)


@dataclass(frozen=True)
class Entry:
    """One file. mtime_ns: of the original, by which the next backup knows that it did not change."""

    size_bytes: int
    sha256: str
    mtime_ns: int


@dataclass
class Manifest:
    """began_at, ended_at: seconds since the epoch. files: by their path below the data folder, with "/".

    log_ends: by a broker's name, where its log ends in this backup (a physical offset).
    """

    version: str
    began_at: float
    ended_at: float = 0.0
    database: str = ""  # sqlite, postgresql (then it is not in the backup), or none yet
    log_ends: dict[str, int] = field(default_factory=dict)
    files: dict[str, Entry] = field(default_factory=dict)

    def write(self, backup: Path) -> None:
        """To the disk, with everything that was copied before."""
        content: dict[str, Any] = {"format": FORMAT, **asdict(self)}
        text = json.dumps({"sha256": _hash_of(content), **content}, indent=1, sort_keys=True)
        new = backup / f"{NAME}.new"
        with new.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.sync()
        new.replace(backup / NAME)
        sync_path(backup)


def read_manifest(backup: Path) -> Manifest:
    """Raises BackupError."""
    path = backup / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        told, found_format = content.pop("sha256"), content["format"]
        if told != _hash_of(content):
            raise BackupError(f"{path} is damaged: it does not have its own checksum")
        if found_format != FORMAT:
            raise BackupError(f"{path} has format {found_format}, this version knows {FORMAT}")
        del content["format"]
        files = {name: Entry(**entry) for name, entry in content.pop("files").items()}
        return Manifest(files=files, **content)
    except OSError as exc:
        raise BackupError(f"{path} can't be read ({exc.strerror})") from exc
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise BackupError(f"{path} is damaged ({exc})") from exc


def newest_backup(folder: Path) -> Path | None:
    """The last whole backup in a folder of backups, or the folder itself if it is one; None if there is none."""
    if (folder / NAME).is_file():
        return folder
    found = sorted(path.parent for path in folder.glob(f"*/{NAME}")) if folder.is_dir() else []
    return found[-1] if found else None


def _hash_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
