"""Our own files: what git lists of the packages that run, and the site of docs/, laid out as wheels install them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "site"  # deploy/site makes it
CONTENT = ("appliance", "dashboard", "gantrymq", "store", "templates", "deploy/locks/reports.lock")
MOVED = {"templates/": "dashboard/templates/", "deploy/locks/": "appliance/locks/"}  # as wheels have them


def files() -> list[str]:
    """Those of the working tree, with changes that are not committed; nothing that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *CONTENT]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def copy_to(folder: Path) -> None:
    """Lay them out as installed wheels are."""
    for name in files():
        target = folder / _place(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    shutil.copytree(SITE, folder / "dashboard" / "site")


def _place(name: str) -> str:
    for start, place in MOVED.items():
        if name.startswith(start):
            return place + name.removeprefix(start)
    return name
