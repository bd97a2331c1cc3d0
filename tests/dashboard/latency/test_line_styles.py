"""The lines of the latency chart differ for every eye: by dash pattern, and in colour also without one kind of cone."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest

from dashboard.latency.figures import STYLES, names
from tests.source_files import ROOT

CSS = (ROOT / "dashboard/static/dashboard/app.css").read_text(encoding="utf-8")
UNLIKE = 20.0  # of CIE76's distance; some 2 are just seen
# what is left of linear red, green and blue without one kind of cone (Viénot, Brettel and Mollon 1999; Machado 2009)
EYES = {
    "all": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)
Colour = tuple[float, ...]


def rule(selector: str) -> str:
    found = re.search(re.escape(selector) + r"\s*\{([^}]*)\}", CSS)
    assert found, selector
    return found[1]


def colour_of(style: str) -> str:
    """The name of its colour."""
    found = re.search(r"stroke:\s*var\(--(\w+)\)", rule(f".chart .line-{style}"))
    assert found, style
    return found[1]


def dashes(style: str) -> str:
    found = re.search(r"stroke-dasharray:\s*([^;}]+)", rule(f".chart .line-{style}"))
    return found[1].strip() if found else "none"


def lab(name: str, theme: int, eye: str) -> Colour:
    found = re.search(rf"--{name}: light-dark\(#(\w{{6}}), #(\w{{6}})\)", CSS)
    assert found, name
    parts = [int(found[1 + theme][at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    seen = [min(max(sum(k * part for k, part in zip(row, linear, strict=True)), 0.0), 1.0) for row in EYES[eye]]
    xyz = [sum(k * part for k, part in zip(row, seen, strict=True)) for row in TO_XYZ]
    x, y, z = (
        value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116
        for value in (part / white for part, white in zip(xyz, WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_each_two_lines_have_unlike_colours(theme: int, eye: str) -> None:
    for one, other in combinations(STYLES, 2):
        first, second = (lab(colour_of(style), theme, eye) for style in (one, other))
        distance = sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) ** 0.5
        assert distance >= UNLIKE, f"{one} and {other}: {distance:.0f}"


def test_no_two_lines_have_the_same_dashes_and_the_legend_shows_them() -> None:
    assert len(names()) == len({dashes(style) for style in STYLES}) == 3
    assert dashes(STYLES[0]) == "none"
    for style in STYLES[1:]:
        key = rule(f".key.key-{style}")
        assert "repeating-linear-gradient" in key and f"var(--{colour_of(style)})" in key
    assert all(one != other for one, other in pairwise(sorted(colour_of(style) for style in STYLES)))
