"""What people ask the Reports page for."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from appliance.reports.catalogue import REPORTS
from dashboard.forms.base import BaseForm
from dashboard.language.report_words import in_words
from dashboard.reports.runs.cron import CRON_CHARS_MAX, CronRefused
from dashboard.reports.runs.cron import check as check_cron
from gantrymq.errors import MessageRejected
from gantrymq.message.topics import check_group, check_topic

RANGES = ((1, _("last 24 hours")), (7, _("last 7 days")), (30, _("last 30 days")), (90, _("last 90 days")))
INTERVALS = (
    (15, _("every 15 minutes")),
    (60, _("every hour")),
    (360, _("every 6 hours")),
    (1440, _("every day")),
    (0, _("never")),
)
TOPICS_MAX = 50
TOPICS_CHARS_MAX = 8192
SECONDS_MAX = 30 * 86_400  # what is kept of a promise's history


class MinuteInput(forms.DateTimeInput):
    """A time to the minute, with the browser's own picker."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format="%Y-%m-%dT%H:%M")


class ZoneForm(BaseForm):
    """A form with a time zone's name; without one it is UTC."""

    zone = forms.CharField(
        required=False,
        max_length=64,
        label=_("Time zone"),
        widget=forms.TextInput(attrs={"placeholder": "UTC", "spellcheck": "false"}),
    )

    def clean_zone(self) -> str:
        zone: str = self.cleaned_data["zone"] or "UTC"
        if zone not in zoneinfo.available_timezones():
            raise forms.ValidationError(
                gettext("%(zone)s is not a time zone; write a name such as Europe/Berlin.") % {"zone": repr(zone)}
            )
        return zone


class RunForm(ZoneForm):
    """What "Run now" may ask for: a report of the last days, or of a range of its own, perhaps of some topics only."""

    report = forms.ChoiceField(
        choices=lambda: [(one.name, in_words(one).title) for one in REPORTS.values()], label=_("Report")
    )
    days = forms.TypedChoiceField(choices=RANGES, coerce=int, initial=7, label=_("Range"))
    begin = forms.DateTimeField(required=False, label=_("From (UTC)"), widget=MinuteInput)
    end = forms.DateTimeField(required=False, label=_("To (UTC), exclusive"), widget=MinuteInput)
    topics = forms.CharField(
        required=False,
        max_length=TOPICS_CHARS_MAX,
        label=_("Only these topics"),
        widget=forms.TextInput(attrs={"placeholder": _("all; separate names with spaces"), "spellcheck": "false"}),
    )

    def clean_topics(self) -> list[str]:
        topics = list(dict.fromkeys(self.cleaned_data["topics"].replace(",", " ").split()))
        if len(topics) > TOPICS_MAX:
            raise forms.ValidationError(
                gettext("%(topics)s topics are too many: choose at most %(most)s.")
                % {"topics": len(topics), "most": TOPICS_MAX}
            )
        for topic in topics:
            try:
                check_topic(topic)
            except MessageRejected as refusal:
                raise forms.ValidationError(f"{topic}: {refusal}") from refusal
        return topics

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        begin, end = values.get("begin"), values.get("end")
        if bool(begin) is not bool(end):
            self.add_error("end" if begin else "begin", gettext("Your own range needs both times."))
        elif begin and begin >= end:
            self.add_error("end", gettext("The range must end after it begins."))
        return values

    @property
    def range_ms(self) -> tuple[int, int] | None:
        """The range of its own, ms since 1970; None without one."""
        begin, end = self.cleaned_data["begin"], self.cleaned_data["end"]
        return (_ms(begin), _ms(end)) if begin else None


class PlanForm(ZoneForm):
    """How often reports run by themselves, how far back they count, and which."""

    interval_minutes = forms.TypedChoiceField(choices=INTERVALS, coerce=int, label=_("Run"))
    days = forms.TypedChoiceField(choices=RANGES, coerce=int, label=_("Range"))
    cron = forms.CharField(
        required=False,
        max_length=CRON_CHARS_MAX,
        label=_("Or by a cron line"),
        widget=forms.TextInput(attrs={"placeholder": "0 6 * * mon-fri", "spellcheck": "false"}),
    )
    reports = forms.MultipleChoiceField(
        choices=lambda: [(one.name, in_words(one).title) for one in REPORTS.values()],
        widget=forms.CheckboxSelectMultiple,
        label=_("Reports"),
        error_messages={"required": _("Choose a report, or switch the schedule off.")},
    )
    field_order = ("interval_minutes", "days", "cron", "zone", "reports")

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        _check_cron(self, values)
        return values


class PromiseForm(BaseForm):
    """How far behind a consumer group may be; without seconds its promise goes."""

    group = forms.CharField(
        required=False,
        max_length=255,
        label=_("Group"),
        widget=forms.TextInput(attrs={"placeholder": _("all others"), "spellcheck": "false"}),
    )
    seconds = forms.FloatField(
        required=False,
        min_value=1,
        max_value=SECONDS_MAX,
        label=_("Maximum lag, seconds"),
        widget=forms.NumberInput(attrs={"placeholder": _("none"), "step": "any"}),
    )

    def clean_group(self) -> str:
        group: str = self.cleaned_data["group"]
        if group:
            try:
                check_group(group)
            except MessageRejected as refusal:
                raise forms.ValidationError(str(refusal)) from refusal
        return group


class WeeklyForm(ZoneForm):
    """By which mail channels the summary of a week is sent, and when; by none: it is not sent."""

    channels = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple, label=_("To"))
    cron = forms.CharField(
        max_length=CRON_CHARS_MAX,
        label=_("When, as a cron line"),
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    field_order = ("channels", "cron", "zone")

    def __init__(self, *args: Any, channels: list[tuple[int, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["channels"].choices = channels  # type: ignore[attr-defined]

    def clean_channels(self) -> list[int]:
        return [int(key) for key in self.cleaned_data["channels"]]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        _check_cron(self, values)
        return values


def _check_cron(form: BaseForm, values: dict[str, Any]) -> None:
    """Tie an error to the form's field `cron` when its line is none, or comes too often."""
    if values.get("cron") and "zone" in values:
        try:
            check_cron(values["cron"], values["zone"], datetime.now(UTC))
        except CronRefused as refusal:
            form.add_error("cron", str(refusal))


def _ms(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1000)
