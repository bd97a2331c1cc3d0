"""What one backup holds. It is written last and whole: without one there is no backup."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from gantrymq.errors import GantryError

NAME = "manifest.json"
CONTENT = "data"  # the folder beside it, laid out as the data folder
WHOLE_FILES, SHARED_FILES = 1, 2  # formats; in the second, a file may be in an older backup, and lack zeros at its end


class BackupError(GantryError):
    """A backup can't be made or used; the text says why, and what to do."""


@dataclass(frozen=True)
class Entry:
    """One file. mtime_ns: of the original, by which the next backup knows that it did not change.

    stored_bytes: how much of it is stored, if zeros at its end are not; held_by: the older backup that has it.
    """

    size_bytes: int
    sha256: str
    mtime_ns: int
    stored_bytes: int | None = None
    held_by: str = ""

    @property
    def length(self) -> int:
        """What is stored, in bytes."""
        return self.size_bytes if self.stored_bytes is None else self.stored_bytes


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

    @property
    def is_shared(self) -> bool:
        """Whether files may be in other backups, too, as in S3."""
        return any(entry.stored_bytes is not None for entry in self.files.values())

    def encoded(self) -> bytes:
        """The content of the file."""
        files = {name: _without_defaults(entry) for name, entry in self.files.items()}
        content = {"format": SHARED_FILES if self.is_shared else WHOLE_FILES, **asdict(self), "files": files}
        text = json.dumps({"sha256": _hash_of(content), **content}, indent=1, sort_keys=True)
        return f"{text}\n".encode()


def decode(data: bytes, where: str) -> Manifest:
    """Raises BackupError, which says where the file is."""
    try:
        content = json.loads(data)
        told, found_format = content.pop("sha256"), content["format"]
        if told != _hash_of(content):
            raise BackupError(f"{where} is damaged: it does not have its own checksum")
        if found_format not in (WHOLE_FILES, SHARED_FILES):
            raise BackupError(f"{where} has format {found_format}, this version knows {WHOLE_FILES} and {SHARED_FILES}")
        del content["format"]
        files = {name: Entry(**entry) for name, entry in content.pop("files").items()}
        if outside := [name for name in files if name.startswith("/") or ".." in name.split("/")]:
            raise BackupError(f"{where} is damaged: {outside[0]} is outside of the data folder")
        return Manifest(files=files, **content)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise BackupError(f"{where} is damaged ({exc})") from exc


def _without_defaults(entry: Entry) -> dict[str, Any]:
    """As versions before the second format read it."""
    return {name: value for name, value in asdict(entry).items() if value not in (None, "")}


def _hash_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
