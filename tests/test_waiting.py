"""A test does not sleep for a fixed time, unless time itself is what it is about: then a comment beside it says why.

What must come is waited for with `until` and `wait_until` of tests/waiting.py. A pause between two looks, in a loop
that ends by itself, is such a wait too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.source_files import ROOT, dotted, sources_of_tests, syntax_of

FIXED_S = 0.05  # shorter ones only let others have a turn
# By folder, sleeps of this kind that no comment explains: the numbers may only shrink.
UNEXPLAINED = {"tests/gantrymq": 3}


def unexplained(source: str, tree: ast.Module | None = None) -> Iterator[int]:
    """Lines of fixed sleeps without a comment on the line or right above it."""
    lines = source.splitlines()
    tree = tree or ast.parse(source)
    waits = {id(call) for loop in ast.walk(tree) if is_wait(loop) for call in ast.walk(loop)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not dotted(node.func).endswith("sleep") or not node.args:
            continue
        is_short = isinstance(node.args[0], ast.Constant) and float(node.args[0].value) < FIXED_S
        above = lines[node.lineno - 2].strip() if node.lineno > 1 else ""
        is_explained = "#" in lines[node.lineno - 1] or above.startswith("#")
        if not is_short and not is_explained and id(node) not in waits:
            yield node.lineno


def is_wait(loop: ast.AST) -> bool:
    """A loop that looks again and again and ends when it sees something."""
    return isinstance(loop, ast.While) and (
        not isinstance(loop.test, ast.Constant)
        or any(isinstance(node, ast.Return | ast.Break) for node in ast.walk(loop))
    )


def test_every_fixed_sleep_says_why_time_has_to_pass() -> None:
    found: dict[str, list[str]] = {}
    for path in sources_of_tests():
        source = path.read_text(encoding="utf-8")
        for line in unexplained(source, syntax_of(path)) if "sleep" in source else ():
            where = path.relative_to(ROOT)
            found.setdefault("/".join(where.parts[:2]), []).append(f"{where}:{line}")
    more = {folder: places for folder, places in found.items() if len(places) > UNEXPLAINED.get(folder, 0)}
    assert not more, "wait for a condition, or say beside the sleep why time has to pass"


def test_the_search_finds_what_it_looks_for() -> None:
    assert list(unexplained("time.sleep(0.05)")) == [1]
    assert list(unexplained("x = 1\nasyncio.sleep(SETTLE_S)")) == [2]
    assert list(unexplained("while True:\n    sleep(1)")) == [2]
    assert list(unexplained("for _ in x:\n    sleep(1)")) == [2]


def test_the_search_lets_waits_and_reasons_alone() -> None:
    assert list(unexplained("while not ready():\n    time.sleep(0.1)")) == []
    assert list(unexplained("while True:\n    if ready():\n        break\n    time.sleep(0.1)")) == []
    assert list(unexplained("time.sleep(0.01)")) == []
    assert list(unexplained("time.sleep(2)  # nothing may come within two rounds")) == []
    assert list(unexplained("# nothing may come\ntime.sleep(2)")) == []


def test_a_property_test_is_bounded_by_examples_and_not_by_a_clock() -> None:
    """Hypothesis gives an example 200 ms otherwise, and calls data slow on a busy machine."""
    texts = {path: path.read_text(encoding="utf-8") for path in sources_of_tests()}
    assert [path for path, text in texts.items() if text.count("\n@given(") != text.count("\n@bounded(")] == []
