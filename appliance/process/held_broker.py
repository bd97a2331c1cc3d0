"""The mark that keeps an appliance from running one of its brokers: a file beside the broker's properties.

`gantry admin drain` writes it, the supervisor obeys it: the broker ends in order, and does not start again, also not
with the machine, until the file is gone.
"""

from __future__ import annotations

import time
from pathlib import Path

HELD = "held"


def hold_file(broker_folder: Path) -> Path:
    """Where the mark of the broker is whose properties are in that folder."""
    return broker_folder / HELD


def hold(broker_folder: Path) -> None:
    text = time.strftime("drained at %Y-%m-%d %H:%M:%S UTC; `gantry admin undrain` removes this file\n", time.gmtime())
    hold_file(broker_folder).write_text(text, encoding="utf-8")


def release(broker_folder: Path) -> bool:
    """Returns whether it was held."""
    try:
        hold_file(broker_folder).unlink()
    except FileNotFoundError:
        return False
    return True
