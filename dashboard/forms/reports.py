"""What people ask the Reports page for."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from typing import Any

from django import forms

from appliance.reports.catalogue import REPORTS
from dashboard.forms.base import BaseForm
from gantrymq.errors import MessageRejected
from gantrymq.message.topics import check_topic

RANGES = ((1, "last 24 hours"), (7, "last 7 days"), (30, "last 30 days"), (90, "last 90 days"))
INTERVALS = (
    (15, "every 15 minutes"),
    (60, "every hour"),
    (360, "every 6 hours"),
    (1440, "every day"),
    (0, "never"),
)
TOPICS_MAX = 50
TOPICS_CHARS_MAX = 8192


class MinuteInput(forms.DateTimeInput):
    """A time to the minute, with the browser's own picker."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class RunForm(BaseForm):
    """What "Run now" may ask for: a report of the last days, or of a range of its own, perhaps of some topics only."""

    report = forms.ChoiceField(choices=[(one.name, one.title) for one in REPORTS.values()], label="Report")
    days = forms.TypedChoiceField(choices=RANGES, coerce=int, initial=7, label="Range")
    begin = forms.DateTimeField(required=False, label="From (UTC)", widget=MinuteInput)
    end = forms.DateTimeField(required=False, label="To (UTC), exclusive", widget=MinuteInput)
    topics = forms.CharField(
        required=False,
        max_length=TOPICS_CHARS_MAX,
        label="Only these topics",
        widget=forms.TextInput(attrs={"placeholder": "all; names with a space between them", "spellcheck": "false"}),
    )
    zone = forms.CharField(
        required=False,
        max_length=64,
        label="Days of the time zone",
        widget=forms.TextInput(attrs={"placeholder": "UTC", "spellcheck": "false"}),
    )

    def clean_topics(self) -> list[str]:
        topics = list(dict.fromkeys(self.cleaned_data["topics"].replace(",", " ").split()))
        if len(topics) > TOPICS_MAX:
            raise forms.ValidationError(f"{len(topics)} topics are too many: name at most {TOPICS_MAX}.")
        for topic in topics:
            try:
                check_topic(topic)
            except MessageRejected as refusal:
                raise forms.ValidationError(f"{topic}: {refusal}") from refusal
        return topics

    def clean_zone(self) -> str:
        zone: str = self.cleaned_data["zone"] or "UTC"
        if zone not in zoneinfo.available_timezones():
            raise forms.ValidationError(f"{zone!r} is no time zone; write a name such as Europe/Berlin.")
        return zone

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        begin, end = values.get("begin"), values.get("end")
        if bool(begin) is not bool(end):
            self.add_error("end" if begin else "begin", "A range of its own needs both times.")
        elif begin and begin >= end:
            self.add_error("end", "The range must end after it begins.")
        return values

    @property
    def range_ms(self) -> tuple[int, int] | None:
        """The range of its own, ms since 1970; None without one."""
        begin, end = self.cleaned_data["begin"], self.cleaned_data["end"]
        return (_ms(begin), _ms(end)) if begin else None


class PlanForm(BaseForm):
    """How often reports run by themselves, how far back they count, and which."""

    interval_minutes = forms.TypedChoiceField(choices=INTERVALS, coerce=int, label="Run")
    days = forms.TypedChoiceField(choices=RANGES, coerce=int, label="Range")
    reports = forms.MultipleChoiceField(
        choices=[(one.name, one.title) for one in REPORTS.values()],
        widget=forms.CheckboxSelectMultiple,
        label="Reports",
        error_messages={"required": "Choose a report, or let them run never."},
    )


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1000)
