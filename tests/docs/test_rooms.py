"""ARCHITECTURE.md draws the house on one screen: every room is in the drawing, and nothing else."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT
from tests.source_files import PACKAGES, sources

SCREEN_LINES = 50


def rooms_drawn() -> set[str]:
    """Folders, told by indentation: a package at the margin, rooms below it, and rooms of a room further in."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## The house on one screen")[2]
    block = [line for line in text.split("\n\nImports point down")[0].splitlines() if line.strip()]
    assert len(block) <= SCREEN_LINES
    found: set[str] = set()
    above: list[tuple[int, str]] = []  # (indentation, folder) of the folders that a line stands in
    for line in block:
        names = re.match(r"^\s*(?:\d  )?((?:[\w/]+/\s)*[\w/]+/)(?=\s)", line + " ")
        assert names, f"no room in this line: {line}"
        indent = names.start(1)
        above = [(depth, folder) for depth, folder in above if depth < indent]
        base = above[-1][1] + "/" if above else ""
        folders = [base + name.rstrip("/") for name in names[1].split()]
        found |= set(folders)
        above.append((indent, folders[0]))
    return found


def test_every_room_is_drawn_and_nothing_else() -> None:
    rooms = {str(path.parent.relative_to(ROOT)) for path in sources()}
    inside = {"dashboard/migrations", "dashboard/templatetags", "dashboard/management/commands"}  # Django wants them
    inside |= {f"gantrymq/contrib/django/{name}" for name in ("management", "management/commands", "migrations")}
    assert rooms_drawn() == {room for room in rooms if room.split("/")[0] in PACKAGES} - inside
