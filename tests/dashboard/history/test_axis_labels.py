"""What the script of the charts writes beside the lines: a unit that fits the number, and a round number at the top."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from dashboard.history.charts import RANGES, Chart, Line
from tests.conftest import require_tool
from tests.source_files import ROOT

SCRIPTS = ROOT / "dashboard/static/dashboard"
SCRIPT = (SCRIPTS / "history.js").read_text(encoding="utf-8")
TIMES = (SCRIPTS / "times.js").read_text(encoding="utf-8")
LASTING = (
    "const lasting = (number, unit) => `${number} ${unit}`;\n"
    + TIMES[TIMES.index("  const duration =") : TIMES.index("  const UNITS")]
    + "globalThis.window = { gantryTimes: { duration, lasting } };\n"
)
MINUTE, HOUR = 60_000, 3_600_000
TOPS = {
    (7, "ms"): "10 ms", (430, "ms"): "500 ms", (4200, "ms"): "5 s", (42_000, "ms"): "50 s", (51_000, "ms"): "1 min",
    (61_000, "ms"): "2 min", (800_000, "ms"): "20 min", (50 * MINUTE, "ms"): "50 min", (51 * MINUTE, "ms"): "1 h",
    (90 * MINUTE, "ms"): "2 h", (33 * HOUR, "ms"): "40 h", (90 * HOUR, "ms"): "4 d", (8 * 24 * HOUR, "ms"): "10 d",
    (3, "msg/s"): "4", (12_000, "msg/s"): "20k",
}  # fmt: skip


TOLD = {
    (430, "ms"): "430 ms", (4200, "ms"): "4.2 s", (200_000, "ms"): "200 s", (12_600_900, "ms"): "12 600 s",
    (3, "msg/s"): "3", (2048, "B"): "2.0 KiB",
}  # fmt: skip


def of_script(call: str, asked: Iterable[tuple[float, str]]) -> list[str]:
    """What the script's functions answer to each value with its unit."""
    node = require_tool("node", "it runs the script (Debian: apt install nodejs)")
    sizes = TIMES[TIMES.index("  const UNITS") : TIMES.index("  window.gantryTimes")]
    functions = SCRIPT[SCRIPT.index("const OF_TIME") : SCRIPT.index("const escaped")]
    ask = f"for (const [value, unit] of {json.dumps(list(asked))}) console.log({call});"
    told = subprocess.run(
        [str(node), "-e", LASTING + sizes + functions + ask], capture_output=True, text=True, check=True, timeout=60
    )
    return told.stdout.replace("\u202f", " ").splitlines()


def test_the_top_of_an_axis_is_round_in_a_unit_that_fits() -> None:
    assert of_script("short(niceMax(value, unit), unit)", TOPS) == list(TOPS.values())


def test_a_percentile_is_said_in_whole_seconds_by_tip_and_table() -> None:
    """200 s is the most that it took, and more than 3 min."""
    assert of_script("exact(value, unit)", TOLD) == list(TOLD.values())
    line = Line("p95", "", "p95")
    chart = Chart("t", "ms", (line,), RANGES["1h"], 60, ((0.0, 200_000),), ())
    page = render_to_string(
        "history/_chart.html", {"chart": chart, "chart_id": 1, "request": RequestFactory().get("/")}
    )
    assert '<td class="num">200\u202fs</td>' in page


@pytest.mark.parametrize("unit", ["ms", "B", "B/s"])
def test_values_with_units_of_their_own_have_none_in_the_head(unit: str) -> None:
    """The table beside the chart is made by the page; both know the same units."""
    chart = Chart("t", unit, (), next(iter(RANGES.values())), 60, (), ())
    assert chart.names_units and f'"{unit}"' in SCRIPT
