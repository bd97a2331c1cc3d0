"""No function is longer than a screen. Those that still are stand here with their length: the list may only shrink."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.source_files import ROOT, sources, statements_of, syntax_of

LINES_MAX = 50
LONGER = {}


def long_functions(path: Path) -> dict[str, int]:
    found = {}
    for node in statements_of(syntax_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LINES_MAX:
                found[node.name] = lines
    return found


def test_no_function_is_longer_than_a_screen() -> None:
    """A hot path may be longer where the benchmark shows that inlining pays: then a comment there says so."""
    found = {str(path.relative_to(ROOT)): long for path in sources() if (long := long_functions(path))}
    assert found == LONGER, "cut what has grown; what became shorter leaves the list"
