"""Sizes are said by one function, in pages, REST's texts, alerts, the shell and the doctor."""

from __future__ import annotations

import json
import math
import re
import subprocess

import pytest

from dashboard.cluster import units
from gantrymq.byte_size import readable
from tests.conftest import require_tool
from tests.source_files import ROOT, sources

SCRIPTS = ROOT / "dashboard/static/dashboard"
EXACT = ("runtime_info.py", "restore.py")  # RocketMQ's own way, which its tools read; a length that must be equal
BY_HAND = re.compile(
    r"\{[^{}]*(?:>> ?[1-4]0|/ ?\(1 << [1-4]0\)|/ ?1024)[^{}]*\}|\{\w*(?:size|bytes)\w*:[^{}]*\} ?(?:bytes\b|[KMG]i?B\b)"
)


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (22341 << 20, "21.8 GiB"), (-5 << 20, "-5.0 MiB"),
        ((1 << 20) - 1, "1.0 MiB"), (100 << 30, "100 GiB"), (-300 << 20, "-300 MiB"), (3 << 70, "3072 EiB"),
        (1023.4, "1023 B"), (1023.6, "1.0 KiB"), (-1023.6, "-1.0 KiB"), (1023.6 * 1024, "1.0 MiB"),
        (math.inf, "—"), (-math.inf, "—"), (math.nan, "—"),
    ],
)  # fmt: skip
def test_a_size_is_said_in_a_sensible_unit(count: float, said: str) -> None:
    assert readable(count) == said
    assert units.size(count) == said.replace(" ", units.THIN)


def test_the_charts_say_a_size_as_the_pages_do() -> None:
    """Scripts have a copy: the same units, and the step to the next where a number would be rounded to 1024."""
    script = (SCRIPTS / "times.js").read_text(encoding="utf-8")
    units_of_charts, step = re.search(r"UNITS = (\[.*?\])", script), re.search(r" >= (102\d\.\d+)", script)
    assert units_of_charts is not None and step is not None
    names = json.loads(units_of_charts[1])
    assert [readable(1 << 10 * power).split()[1] for power in range(8)] == [*names, names[-1]]
    below = math.nextafter(float(step[1]), 0)
    assert (readable(below), readable(float(step[1]))) == ("1023 B", "1.0 KiB")


def test_the_labels_of_an_axis_differ() -> None:
    """Of a slave that is in sync it said 0 B, 1 B and 1 B."""
    size, functions = (
        (SCRIPTS / name).read_text(encoding="utf-8").partition(begin)[2].partition(end)[0]
        for name, begin, end in (
            ("times.js", "  const UNITS", "window.gantryTimes ="),
            ("history.js", "(() => {", "const escaped"),
        )
    )
    asked = """for (const unit of ["B", "B/s", "messages"]) for (const most of [0, 1, 3, 474, 1025]) {
        const top = niceMax(most, unit); console.log([0, top / 2, top].map((at) => short(at, unit)).join()); }"""
    node = [
        str(require_tool("node", "it runs the scripts of pages")),
        "-e",
        f"const window = {{}}, UNITS{size}{functions}{asked}",
    ]
    lines = subprocess.run(node, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert len(lines) == 15 and [line for line in lines if len(set(line.split(","))) != 3] == []


def test_no_module_says_a_size_by_hand() -> None:
    found = [
        f"{path}: {line.strip()}"
        for path in sources()
        if path.name not in ("byte_size.py", *EXACT) and "bench" not in path.parts
        for line in path.read_text(encoding="utf-8").splitlines()
        if BY_HAND.search(line)
    ]
    assert not found, "\n".join(found)
