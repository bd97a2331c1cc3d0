"""Tests see what users of the code see: they reach into private state of others in ever fewer files.

A test that looks at `thing._attribute` breaks when the inside changes, and holds when the outside is broken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.source_files import ROOT, dotted, sources_of_tests, syntax_of

# Public in spite of their underscore: named tuples and Django's models.
PUBLIC = {"_replace", "_asdict", "_fields", "_make", "_meta"}
# Files of each folder that still do. The numbers may only shrink.
FILES_MAX = {
    "tests": 1, "tests/appliance": 10, "tests/bench": 3, "tests/dashboard": 4, "tests/docs": 1, "tests/gantrymq": 2,
    "tests/interop": 3, "tests/store": 6,
}  # fmt: skip


def reaches_inside(tree: ast.Module) -> Iterator[str]:
    """Each attribute with one underscore of something that is not the object itself or its base."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            is_own = dotted(node.value) in ("self", "cls") or ast.unparse(node.value) == "super()"
            if not is_own and node.attr not in PUBLIC:
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_ever_fewer_files_reach_into_private_state() -> None:
    found: dict[str, list[str]] = {}
    for path in sources_of_tests():
        if "._" in path.read_text(encoding="utf-8") and any(reaches_inside(syntax_of(path))):
            place = path.relative_to(ROOT)
            found.setdefault("/".join(place.parent.parts[:2]), []).append(str(place))
    more = {folder: files for folder, files in found.items() if len(files) > FILES_MAX.get(folder, 0)}
    assert not more, "give the code a public way that is right by itself, or look at its effect"


def test_the_search_finds_what_it_looks_for() -> None:
    assert list(reaches_inside(ast.parse("store._parts.log.sync()"))) == ["1: store._parts"]
    assert list(reaches_inside(ast.parse("self.link._handles"))) == ["1: self.link._handles"]


def test_the_search_lets_own_and_public_names_alone() -> None:
    assert (
        list(reaches_inside(ast.parse("self._log, super()._env(), row._replace(a=1), model._meta, module.__file__")))
        == []
    )
