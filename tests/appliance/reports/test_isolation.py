"""What a report's parameters can't become. What its process opens is told in with_spark/test_ingest.py."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
TEXT_CALLS = {"sql", "expr", "selectExpr", "createOrReplaceTempView"}


def text_calls(source: str) -> list[str]:
    """Calls that make a query of text."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    names = [(node.lineno, ast.unparse(node.func).rpartition(".")[2]) for node in calls]
    return [f"{line}: {name}" for line, name in names if name in TEXT_CALLS]


def test_no_report_is_made_of_text() -> None:
    """S50: parameters are bound as values; there is no query text that they could end."""
    paths = sorted((ROOT / "appliance" / "reports").glob("*.py"))
    assert len(paths) > 10
    assert {path.name: found for path in paths if (found := text_calls(path.read_text("utf-8")))} == {}
    assert text_calls("spark.sql(f'select {topic}')") and text_calls("F.expr(topic)")
