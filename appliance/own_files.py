"""Where the appliance's own files are, in a checkout and installed from wheels.

                 checkout            wheels
    packages     its folder          site-packages
    locks        deploy/locks        appliance/locks, which deploy/build-wheels puts there
    site         build/site          dashboard/site, the same; in a checkout only deploy/site makes it
    reports      this Python's own   the folder that reports.folder names; the Debian package has one
    data         its data/           $XDG_DATA_HOME/gantrymq: nothing is written beside the packages

Needs no package: deploy/up asks for the settings before any is installed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]  # where `import appliance` finds it
_IN_CHECKOUT = ROOT / "deploy" / "locks"
LOCKS = _IN_CHECKOUT if _IN_CHECKOUT.is_dir() else ROOT / "appliance" / "locks"
SITE = ROOT / "build" / "site" if _IN_CHECKOUT.is_dir() else ROOT / "dashboard" / "site"

FACTS = "gantry-binary.json"  # what the tree of the single file contains; only such a tree has it
HOME_DATA = "~/.local/share/gantrymq"
REPORTS_FOLDER = ROOT / "reports.folder"  # its text is where install-reports puts packages


def default_data() -> Path:
    """The data folder when none is named."""
    if (ROOT / "pyproject.toml").is_file():
        return ROOT / "data"
    if folder := os.environ.get("XDG_DATA_HOME"):
        return Path(folder) / "gantrymq"
    try:
        return Path(HOME_DATA).expanduser()
    except RuntimeError:  # an account without a home, as containers have them
        return Path.cwd() / "gantrymq"


def how_to_add(extra: str) -> str:
    """What installs packages that most installations do not need: in words, behind a colon."""
    if REPORTS_FOLDER.is_file() or (Path(sys.prefix) / FACTS).is_file():
        return "the single file and the Debian package can't have it; start GantryMQ from wheels or a checkout"
    command = (
        f"deploy/extra {extra}"
        if (ROOT / "deploy" / "extra").is_file()
        else f"pip install 'gantrymq-appliance[{extra}]'"
    )
    return f"install it with `{command}`"
