"""Moments on pages. Each is a `<time>` that says its zone, UTC; times.js sets the reader's own beside it.

Templates show moments by these tags and by nothing else, so that the reader's choice (UTC, local, both) holds anywhere.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.cluster import units

register = template.Library()

# What is shown of a moment: with its day or without, and how many characters of "07:49:27.123". times.js has the same.
SHOWN = {
    "day": (True, 0),
    "minute": (True, 5),
    "second": (True, 8),
    "millisecond": (True, 12),
    "clock-minute": (False, 5),
    "clock": (False, 8),
    "clock-millisecond": (False, 12),
}


@register.simple_tag
def when(at: datetime | float | None, show: str = "second") -> SafeString | str:
    """A moment: aware, or epoch seconds. None and what is not after 1970 were never: an em dash."""
    seconds = at.timestamp() if isinstance(at, datetime) else at
    return when_ms(None if seconds is None else seconds * 1000, show)


@register.simple_tag
def when_ms(at_ms: float | None, show: str = "second") -> SafeString | str:
    """A moment in epoch milliseconds, as brokers tell it."""
    if at_ms is None or at_ms <= 0:
        return units.UNKNOWN
    has_day, clock_chars = SHOWN[show]
    at = datetime.fromtimestamp(round(at_ms) / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    day, clock = at.split("T")
    return format_html(
        '<time datetime="{}Z" data-show="{}">{}{}{}</time>',
        at,
        show,
        format_html('<span class="t-day">{}</span>', day) if has_day else "",
        " " if has_day and clock_chars else "",
        format_html('<span class="t-clock">{} <small>UTC</small></span>', clock[:clock_chars]) if clock_chars else "",
    )
