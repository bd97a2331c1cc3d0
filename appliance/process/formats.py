"""The formats of an appliance's folders: data folder, stores, reports. The stamps: store/startup/format_stamp.py.

A number rises when an older program would misread what this one writes: another step at the end of its tuple.
"""

from __future__ import annotations

from pathlib import Path

from store.base.errors import NewerFormat, StampDamaged
from store.startup.format_stamp import STORE, FolderFormat, Step, bring_up_to_date, check_format

__all__ = ["DATA", "REPORTS", "STORE", "bring_up_to_date", "why_refused"]


def _rewritten_at_start(data: Path) -> list[Path]:
    """What a start changes by itself: the database, the lines that `gantry up` is responsible for, accounts."""
    return [
        *sorted(data.glob("dashboard/db.sqlite3*")),  # with its journal
        *sorted(data.glob("namesrv/*.properties")),
        *sorted(data.glob("brokers/*/broker.properties")),
        *sorted(data.glob("accounts/**/*.yml")),
    ]


def _nothing(reports: Path) -> tuple[Path, ...]:
    """A run only adds to a lake from before there were stamps."""
    return ()


DATA = FolderFormat("data folder", (Step(_rewritten_at_start),))
REPORTS = FolderFormat("folder of reports", (Step(_nothing),))


def why_refused(folder: Path, known: FolderFormat) -> str:
    """Say why this program must not work on a folder, "" when it may."""
    try:
        check_format(folder, known)
    except (NewerFormat, StampDamaged) as exc:
        return str(exc)
    return ""
