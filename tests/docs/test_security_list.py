"""docs/security.md and the tests agree: each item of the checklist is tested by name, or the page says why not."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from tests.source_files import statements_of, syntax_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
ITEMS = {
    f"S{number:02}"
    for first, last in ((1, 6), (10, 26), (30, 43), (50, 53), (60, 66))
    for number in range(first, last + 1)
}
NAME = re.compile(r"\bS\d\d\b")
NUMBERS = re.compile(r"def test_((?:s\d\d_)+)")
ROW = re.compile(r"^\| (S\d\d) \| ([^|]+) \|([^|]*)\|$", re.MULTILINE)


def rows(text: str) -> dict[str, tuple[str, str]]:
    """Number to item and reason, of the page's table."""
    found = ROW.findall(text)
    assert len({number for number, _, _ in found}) == len(found), "a number stands there twice"
    return {number: (item.strip(), why.strip()) for number, item, why in found}


@functools.cache
def named_by_tests() -> dict[str, set[str]]:
    """Number to the tests that name it: by their name, in their docstring, or in that of their module."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path == Path(__file__).resolve():
            continue
        tree = syntax_of(path)
        tests = [
            node
            for node in statements_of(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        ]
        for node in (tree, *tests):
            where = path.name if isinstance(node, ast.Module) else f"{path.name}::{node.name}"
            by_name = "" if isinstance(node, ast.Module) else node.name.upper().replace("_", " ")
            for number in NAME.findall(f"{by_name} {ast.get_docstring(node) or ''}"):
                found.setdefault(number, set()).add(where)
    return found


def test_the_page_has_every_item_once() -> None:
    assert set(rows(PAGE.read_text(encoding="utf-8"))) == ITEMS


@pytest.mark.parametrize("number", sorted(ITEMS))
def test_an_item_is_tested_by_name_or_the_page_says_why_not(number: str) -> None:
    item, why = rows(PAGE.read_text(encoding="utf-8"))[number]
    assert item
    assert named_by_tests().get(number) or len(why) > 20, f"{number} ({item}): no test names it, no reason is given"


def test_tests_of_the_dashboard_and_of_operations_have_their_numbers_as_names() -> None:
    """`pytest -k s13` runs what checks S13. What has no test of its name is what the page says is not built."""
    named: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for numbers in NUMBERS.findall(path.read_text(encoding="utf-8")):
            named |= set(numbers.upper().strip("_").split("_"))
    reasons = rows(PAGE.read_text(encoding="utf-8"))
    by_name = {item for item in ITEMS if item < "S30" or item >= "S60"}
    assert {item for item in by_name - named if len(reasons[item][1]) <= 20} == set()
    assert len(by_name & named) >= 27


def test_tests_name_no_item_that_is_not_on_the_list() -> None:
    assert {number: where for number, where in named_by_tests().items() if number not in ITEMS} == {}
