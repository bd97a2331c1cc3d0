"""The formats of an appliance's folders: data folder, stores, reports. The stamps: store/startup/format_stamp.py.

Add a step at the end of a tuple when an older program would misread what this one writes; the format's number rises.
"""

from __future__ import annotations

from pathlib import Path

from store.base.errors import NewerFormat, StampDamaged
from store.startup.format_stamp import STORE, FolderFormat, Step, bring_up_to_date, check_format

__all__ = ["DATA", "REPORTS", "STORE", "bring_up_to_date", "why_refused"]


def _rewritten_at_start(data: Path) -> list[Path]:
    """The files that a start rewrites: the database, the properties that `gantry up` manages, accounts."""
    return [
        *sorted(data.glob("dashboard/db.sqlite3*")),  # with its journal
        *sorted(data.glob("namesrv/*.properties")),
        *sorted(data.glob("brokers/*/broker.properties")),
        *sorted(data.glob("accounts/**/*.yml")),
    ]


def _nothing(reports: Path) -> tuple[Path, ...]:
    """Nothing is rewritten: a run only adds files, and gives the folder of an older lake another name."""
    return ()


DATA = FolderFormat("data folder", (Step(_rewritten_at_start),))
REPORTS = FolderFormat("folder of reports", (Step(_nothing), Step(_nothing), Step(_nothing)))


def why_refused(folder: Path, known: FolderFormat) -> str:
    """Return why this program must not work on a folder, "" when it may."""
    try:
        check_format(folder, known)
    except (NewerFormat, StampDamaged) as exc:
        return str(exc)
    return ""
