"""The table in docs/scale.md, from `gantry capacity`: `python -m tests.docs.scale_page` writes it, a test compares."""

from __future__ import annotations

from appliance.cli.capacity import Costs, Goal, number, work_out
from tests.docs.pages import ROOT, between

PAGE = ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- table: capacity -->\n", "<!-- end of the table -->\n"
RATES = (1e3, 1e4, 1e5, 1e6, 1e7)


def page(written: str) -> str:
    """The page with the table as the program works it out."""
    return between(written, BEGIN, END, _table())


def _table() -> str:
    needs = [work_out(Goal(rate=rate), Costs()).rows for rate in RATES]
    lines = [
        "| messages a second | " + " | ".join(number(rate) for rate in RATES) + " |",
        "|---|" + "---|" * len(RATES),
    ]
    for cells in zip(*needs, strict=True):
        lines.append(f"| {cells[0][0]} | " + " | ".join(figure for _, figure in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
