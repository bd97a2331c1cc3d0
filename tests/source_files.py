"""Where the code of the project and of its tests lies, for tests that read it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gantrymq", "store", "appliance", "dashboard")


@functools.cache
def syntax_of(path: Path) -> ast.Module:
    """A module's syntax tree, parsed once for all tests that read code. Not to be changed."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def sources() -> list[Path]:
    """Every module that is shipped."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def sources_of_tests() -> list[Path]:
    """Every module of the tests, helpers too."""
    return sorted((ROOT / "tests").rglob("*.py"))
