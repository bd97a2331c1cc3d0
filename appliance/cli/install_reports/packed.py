"""The file of deploy/build-reports: a tar of a note for whom it was made, and the packages as their index has them.

Nothing in it is trusted: a package is taken only if its SHA-256 is one of the lock that this installation brings.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from appliance.cli.install_reports.installer import Failed
from appliance.cli.install_reports.locked import Locked

NOTE = "gantrymq-reports.json"  # the first file
_PIECE_BYTES = 1 << 20


class PackedReports:
    """An open file."""

    def __init__(self, path: Path, archive: tarfile.TarFile, note: dict[str, str]) -> None:
        self._path = path
        self._archive = archive
        self._note = note

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path) -> Iterator[PackedReports]:
        """Raises Failed for a file that is another or was made for another Python."""
        with contextlib.ExitStack() as stack:
            try:
                archive = stack.enter_context(tarfile.open(path, "r:"))
            except (OSError, tarfile.TarError) as exc:
                why = exc.strerror if isinstance(exc, OSError) else "it is no tar archive"
                raise Failed(f"{path} can't be read: {why}. Name the file that deploy/build-reports made") from exc
            packed = cls(path, archive, _read_note(archive))
            packed._check_python()
            yield packed

    def copy(self, package: Locked, folder: Path) -> None:
        """Put the package's file into a folder. Raises Failed when there is none with a hash of the lock."""
        try:
            for item in self._archive:
                name = PurePosixPath(item.name).name
                if item.isreg() and _is_of(name, package.name) and self._copied(item, folder / name, package.hashes):
                    return
        except (OSError, tarfile.TarError) as exc:
            raise Failed(f"{self._path} is damaged ({exc}): copy or build it again") from exc
        raise Failed(
            f"{self._path} has no file of {package.requirement} with a hash of the lock. It was made for GantryMQ "
            f"{self._note['gantrymq']}, or it is damaged: build it from this version"
        )

    def _copied(self, item: tarfile.TarInfo, to: Path, hashes: set[str]) -> bool:
        content = self._archive.extractfile(item)
        assert content is not None, item.name
        digest = hashlib.sha256()
        with to.open("wb") as file:
            while piece := content.read(_PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
        if digest.hexdigest() in hashes:
            return True
        to.unlink()
        return False

    def _check_python(self) -> None:
        if not self._note:
            raise Failed(f"{self._path} has no packages for reports. Name the file that deploy/build-reports made")
        own = "{}.{}".format(*sys.version_info)
        if self._note["python"] != own:
            raise Failed(
                f"{self._path} is for Python {self._note['python']}, and this is {own}: build one with "
                f"`deploy/build-reports --python python{own}`"
            )


def _read_note(archive: tarfile.TarFile) -> dict[str, str]:
    """Empty when there is none."""
    with contextlib.suppress(KeyError, ValueError, tarfile.TarError):
        if file := archive.extractfile(NOTE):
            note = json.load(file)
            return {name: str(note[name]) for name in ("gantrymq", "python")}
    return {}


def _is_of(file: str, package: str) -> bool:
    """Whether the name of a file of an index is one of the package: NAME-VERSION…, with _ for -."""
    return file.lower().replace("_", "-").startswith(package.lower().replace("_", "-") + "-")


def note_of(version: str, python: str) -> bytes:
    """The content of the note."""
    return json.dumps({"gantrymq": version, "python": python}).encode() + b"\n"
