"""Where the code of the project and of its tests lies, for tests that read it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gantrymq", "store", "appliance", "dashboard")


def sources() -> list[Path]:
    """Every module that is shipped."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def sources_of_tests() -> list[Path]:
    """Every module of the tests, helpers too."""
    return sorted((ROOT / "tests").rglob("*.py"))
