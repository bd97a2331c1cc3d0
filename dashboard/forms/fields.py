"""Fields that pages and REST share: how long, and when."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext

_UNITS_MS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_CHINESE = {"毫秒": "ms", "秒": "s", "分钟": "min", "分": "min", "小时": "h", "天": "d"}
_DURATION = re.compile(rf"(\d{{1,15}}(?:\.\d{{1,3}})?)\s*(ms|s|min|m|h|d|{'|'.join(_CHINESE)})")
DURATION_MS_MAX = 100 * 365 * 86_400_000
CHARS_MAX = 40


class _TimeField(forms.CharField):
    """A text → milliseconds, as `read` has it; None when empty."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=CHARS_MAX, **kwargs)

    def clean(self, value: Any) -> int | None:
        text = super().clean(value).strip()
        return self.read(text) if text else None

    def read(self, text: str) -> int:
        raise NotImplementedError


class DurationField(_TimeField):
    """How long: "90 s", "15 min", "12 h", "7 d"; no time at all only where least_ms says so."""

    def __init__(self, *, least_ms: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.least_ms = least_ms

    def read(self, text: str) -> int:
        return parse_duration(text, least_ms=self.least_ms)


class MomentField(_TimeField):
    """When: "2026-11-21 07:30" (UTC unless a zone is given), since the epoch."""

    def read(self, text: str) -> int:
        return parse_moment(text)


class WhenField(MomentField):
    """When: also "2 h", which is that long ago."""

    def read(self, text: str) -> int:
        if _DURATION.fullmatch(text.lower()):
            return max(1, int(time.time() * 1000) - parse_duration(text))
        return parse_moment(text)


class PastMomentField(WhenField):
    """When, in the past. What is to come is refused, not taken for the end."""

    def clean(self, value: Any) -> int | None:
        at_ms = super().clean(value)
        if at_ms is not None and at_ms > time.time() * 1000:
            raise forms.ValidationError(
                gettext("That time is in the future. To skip waiting messages, choose the end.")
            )
        return at_ms


def parse_duration(text: str, *, least_ms: int = 1) -> int:
    """Milliseconds. Raises ValidationError."""
    found = _DURATION.fullmatch(text.lower())
    if found is None:
        raise forms.ValidationError(gettext("Write it like 90 s, 15 min, 12 h or 7 d."))
    milliseconds = round(float(found[1]) * _UNITS_MS[_CHINESE.get(found[2], found[2])])
    if not least_ms <= milliseconds <= DURATION_MS_MAX:
        raise forms.ValidationError(gettext("From 1 ms to 100 years."))
    return milliseconds


def parse_moment(text: str) -> int:
    """Milliseconds since the epoch. Raises ValidationError."""
    try:
        moment = datetime.fromisoformat(text)
        at_ms = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise forms.ValidationError(gettext("Write it like 2026-11-21 07:30.")) from None
    if at_ms <= 0:
        raise forms.ValidationError(gettext("That is before 1970."))
    return at_ms


def duration_text(milliseconds: int | None) -> str:
    """What DurationField takes for it, in the greatest unit that is whole."""
    if milliseconds is None:
        return ""
    for unit in ("d", "h", "min", "s"):
        if milliseconds % _UNITS_MS[unit] == 0:
            return f"{milliseconds // _UNITS_MS[unit]} {unit}"
    return f"{milliseconds} ms"
