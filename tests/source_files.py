"""Where the code of the project and of its tests lies, for tests that read it."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gantrymq", "store", "appliance", "dashboard")


@functools.cache
def syntax_of(path: Path) -> ast.Module:
    """A module's syntax tree, parsed once for all tests that read code. Not to be changed."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    gc.freeze()  # trees stay until the end: no collection has to look at their millions of nodes
    return tree


def statements_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node, those inside others too; expressions, most of a tree, are not looked into."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(tree, part, ()):
            yield statement
            yield from statements_of(statement)


def dotted(node: ast.expr) -> str:
    """`a.b.c` of names and attributes, what stands before them as `()`; much faster than ast.unparse."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.append(node.id if isinstance(node, ast.Name) else "()")
    return ".".join(reversed(names))


def sources() -> list[Path]:
    """Every module that is shipped."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def sources_of_tests() -> list[Path]:
    """Every module of the tests, helpers too."""
    return sorted((ROOT / "tests").rglob("*.py"))
