"""What the script of the charts writes beside the lines: a unit that fits the number, and a round number at the top."""

from __future__ import annotations

import json
import subprocess

import pytest

from dashboard.history.charts import RANGES, Chart
from tests.conftest import require_tool
from tests.source_files import ROOT

SCRIPT = (ROOT / "dashboard/static/dashboard/history.js").read_text(encoding="utf-8")
LASTING = "globalThis.window = { gantryTimes: { lasting: (number, unit) => `${number} ${unit}` } };"
TOPS = {
    (7, "ms"): "10 ms", (430, "ms"): "500 ms", (4200, "ms"): "5 s", (42_000, "ms"): "50 s", (51_000, "ms"): "1 min",
    (61_000, "ms"): "2 min", (800_000, "ms"): "20 min", (3, "msg/s"): "4", (12_000, "msg/s"): "20k",
}  # fmt: skip


def test_the_top_of_an_axis_is_round_in_a_unit_that_fits() -> None:
    node = require_tool("node", "it runs the script (Debian: apt install nodejs)")
    functions = SCRIPT[SCRIPT.index("const niceMax") : SCRIPT.index("const escaped")]
    asked = f"for (const [value, unit] of {json.dumps(list(TOPS))}) console.log(short(niceMax(value, unit), unit));"
    told = subprocess.run(
        [str(node), "-e", LASTING + functions + asked], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.replace("\u202f", " ").splitlines() == list(TOPS.values())


@pytest.mark.parametrize("unit", ["ms", "B", "B/s"])
def test_values_with_units_of_their_own_have_none_in_the_head(unit: str) -> None:
    """The table beside the chart is made by the page; both know the same units."""
    chart = Chart("t", unit, (), next(iter(RANGES.values())), 60, (), ())
    assert chart.names_units and f'"{unit}"' in SCRIPT
