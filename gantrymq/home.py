"""Where a user's own files go by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def home_folder() -> Path:
    """The user's home; the working folder for a user without one: containers run under any user id, without HOME."""
    from pathlib import Path

    try:
        return Path.home()
    except RuntimeError:
        return Path.cwd()
