"""What the lock files pin: for the tools that list it (sbom) or look it up (audit)."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

LOCKS = Path(__file__).parent / "locks"
SHIPPED = ("appliance", "fast-path", "reports")  # what `deploy/up` and the reports install; `test` only checks
BINARY = LOCKS / "binary.toml"  # what the single file carries beside packages of Python
_PURLS = {"compress": "pkg:golang/github.com/klauspost/compress@v{}", "go": "pkg:golang/stdlib@{}"}
_ENTRY = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)", re.MULTILINE)


class Pinned(NamedTuple):
    """One package at one version, by its normal name (PEP 503)."""

    name: str
    version: str


def lock_names() -> list[str]:
    """The locks there are, those that are shipped first."""
    return sorted((path.stem for path in LOCKS.glob("*.lock")), key=lambda name: (name not in SHIPPED, name))


def pinned(lock: str) -> list[Pinned]:
    """The packages of one lock, in the order of their names."""
    text = (LOCKS / f"{lock}.lock").read_text(encoding="utf-8")
    found = {Pinned(normal(entry["name"]), entry["version"]) for entry in _ENTRY.finditer(text)}
    return sorted(found)


def carried() -> dict[Pinned, str]:
    """What the single file carries that is no package of Python, each with its package URL."""
    parts = tomllib.loads(BINARY.read_text(encoding="utf-8")).values()
    found = {Pinned(*item) for part in parts for item in part.get("contains", {}).items()}
    return {item: _PURLS.get(item.name, "pkg:generic/" + item.name + "@{}").format(item.version) for item in found}


def interpreter_built() -> date:
    """When the single file's interpreter was built, with the fixes of that day: its module's version says so."""
    version = tomllib.loads(BINARY.read_text(encoding="utf-8"))["interpreter"]["version"]
    return datetime.strptime(version.split("-")[2], "%Y%m%d").replace(tzinfo=UTC).date()


def carried_licences() -> dict[str, str]:
    """The licence of each of these, by its name, as an expression of SPDX."""
    found: dict[str, str] = tomllib.loads(BINARY.read_text(encoding="utf-8"))["licences"]
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
