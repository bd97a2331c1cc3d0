"""Numbers as people read them. Unknown is an em dash, zero is 0, and the two are never confused.

Thousands are parted by a narrow no-break space, so that columns line up and nothing wraps.
"""

from __future__ import annotations

from datetime import UTC, datetime

from dashboard.language.sentences import gettext
from gantrymq.byte_size import readable

UNKNOWN = "—"
AT_LEAST = "≥\u202f"  # before a sum that lacks a part
THIN = "\u202f"


def count(value: int | float | None) -> str:
    """1234567 → "1 234 567"."""
    return UNKNOWN if value is None else f"{round(value):,}".replace(",", THIN)


def rate(value: float | None) -> str:
    """Per second: "0", "0.4", "4", "12", "1 240"."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    if value < 0.05:
        return "<0.1"
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else count(value)


def size(value: int | float | None) -> str:
    """Bytes: "512 B", "3.2 GiB"."""
    return UNKNOWN if value is None else readable(value, THIN)


def percent(ratio: float | None) -> str:
    """0.333 → "33 %"; below ten with one digit."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    if value == 0:
        return f"0{THIN}%"
    return f"{value:.1f}{THIN}%" if abs(value) < 9.95 else f"{count(value)}{THIN}%"


def mark(ratio: float) -> str:
    """A mark as its setting has it: 0.9 → "90 %", 0.855 → "85.5 %"."""
    return f"{round(ratio * 100, 2):g}{THIN}%"


def milliseconds(value: float | None) -> str:
    """Waits: "0 ms", "12 ms", "3.4 s"."""
    if value is None:
        return UNKNOWN
    return f"{value:.0f}{THIN}ms" if value < 1000 else duration(value / 1000)


def duration(seconds: float | None) -> str:
    """How long: "8 s", "4 min", "3 h 12 min", "5 d 2 h"."""
    if seconds is None:
        return UNKNOWN
    whole = max(0, int(seconds))
    if whole < 60:
        tenths = 0 < seconds < 9.95 and seconds != whole
        return gettext("%(count)s\u202fs") % {"count": f"{seconds:.1f}" if tenths else whole}
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 60:
        return gettext("%(count)s\u202fmin") % {"count": minutes}
    if hours < 24:
        only, both = gettext("%(count)s\u202fh"), gettext("%(count)s\u202fh %(more)s\u202fmin")
        return both % {"count": hours, "more": minutes % 60} if minutes % 60 else only % {"count": hours}
    only, both = gettext("%(count)s\u202fd"), gettext("%(count)s\u202fd %(more)s\u202fh")
    return both % {"count": days, "more": hours % 24} if hours % 24 else only % {"count": days}


def ago(at: float | None, now: float) -> str:
    """A moment as distance: "now", "12 s ago"; epoch seconds."""
    if at is None:
        return UNKNOWN
    age = now - at
    return gettext("now") if age < 1.5 else gettext("%(time)s ago") % {"time": duration(int(age))}


def moment(at_ms: float | None) -> str:
    """A stored timestamp in UTC: "2026-11-21 07:49:27.123"; 0 and less mean never."""
    if at_ms is None or at_ms <= 0:
        return UNKNOWN
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
