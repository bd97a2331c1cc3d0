"""What the lock of the reports names for this Python, and what of it is missing."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker

BUILDS_OTHERS = "setuptools"  # PySpark comes as source


class Locked(NamedTuple):
    """One package of the lock."""

    requirement: str  # name==version
    block: str  # its lines in the lock file, hashes included

    @property
    def name(self) -> str:
        return self.requirement.partition("==")[0]

    @property
    def hashes(self) -> set[str]:
        """The SHA-256 of each file that may be it."""
        return set(re.findall(r"--hash=sha256:([0-9a-f]+)", self.block))


def locked_packages(lock: Path, python: dict[str, str] | None = None) -> Iterator[Locked]:
    """Those that are for this Python, or for another one of this machine by its values of markers."""
    for block in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text(encoding="utf-8")):
        match = re.match(r"([A-Za-z0-9._-]+==[^\s;\\]+)(?:\s*;([^\\\n]*))?", block)
        if match and (match[2] is None or Marker(match[2].strip()).evaluate(python)):
            yield Locked(match[1], block)


def missing_packages(lock: Path) -> list[Locked]:
    """Those that this Python lacks in that version, what builds others first."""
    missing = [package for package in locked_packages(lock) if not _is_installed(package.requirement)]
    return sorted(missing, key=lambda package: package.name != BUILDS_OTHERS)


def _is_installed(requirement: str) -> bool:
    name, _, version = requirement.partition("==")
    try:
        return importlib.metadata.version(name) == version
    except importlib.metadata.PackageNotFoundError:
        return False
