"""One weakness as the page Security and REST show it."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.status.problems import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What is weak (title), what shows it (seen), what it means and what to do (advice), and where.

    href, does: the page that changes it, and what the button says. lines: settings or a command to copy.
    """

    code: str  # stays the same over versions: open-network, token-unused
    level: Level
    title: str
    seen: str
    advice: str
    href: str = ""
    does: str = ""
    lines: str = ""
