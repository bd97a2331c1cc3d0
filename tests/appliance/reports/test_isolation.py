"""What a report's process opens, and what its parameters can't become."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def test_sparks_ports_are_this_machines_alone_and_there_is_no_page_and_no_event_log(spark: SparkSession) -> None:
    """S51."""
    from pyspark import SparkContext

    context = spark.sparkContext
    assert context.uiWebUrl is None
    assert context.getConf().get("spark.eventLog.enabled", "false") == "false"
    gateway = SparkContext._gateway
    assert gateway is not None
    machine = psutil.Process(gateway.proc.pid)
    processes = [machine, *machine.children(recursive=True)]
    listening = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):  # a helper that the JVM had started has ended
            found = process.net_connections("tcp")
            listening += [item.laddr.ip for item in found if item.status == psutil.CONN_LISTEN]
    assert listening, "nothing listens: this looks at the wrong process"
    assert {address.removeprefix("::ffff:") for address in listening} <= {"127.0.0.1", "::1"}
