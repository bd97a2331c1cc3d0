"""Where a consumer group shall go on: the form that the wizard and REST share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms

from dashboard.forms import CalmForm
from gantrymq.client.admin_offsets import TO_END

TO_BEGIN = 0
OFFSET_MAX = (1 << 63) - 1
TO_CHOICES = [
    ("end", "The end: skip all that waits"),
    ("begin", "The begin: read everything again"),
    ("time", "A time: what was stored from then on"),
    ("offset", "An offset, in every queue"),
]


class ResetForm(CalmForm):
    """topic, and where to. `position()` gives (timestamp in ms, offset or None)."""

    topic = forms.ChoiceField(label="Topic")
    to = forms.ChoiceField(label="Go on at", choices=TO_CHOICES, initial="end")
    at = forms.CharField(
        label="Time (UTC)", required=False, max_length=40,
        help_text="For “a time”: 2026-11-21 07:30, with a zone if it is not UTC.",
        widget=forms.TextInput(attrs={"placeholder": "2026-11-21 07:30", "spellcheck": "false"}),
    )  # fmt: skip
    offset = forms.IntegerField(
        label="Offset", required=False, min_value=0, max_value=OFFSET_MAX,
        help_text="For “an offset”. Queues that don't reach so far use their nearest.",
    )  # fmt: skip

    def __init__(self, *args: Any, topics: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]

    def clean_at(self) -> int | None:
        """Milliseconds since the epoch."""
        text = self.cleaned_data["at"].strip()
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
            at_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        except (ValueError, OverflowError):
            raise forms.ValidationError("Write it like 2026-11-21 07:30.") from None
        if at_ms <= 0:
            raise forms.ValidationError("There was no message yet at that time.")
        return at_ms

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("to") == "time" and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", "Say which time.")
        if cleaned.get("to") == "offset" and cleaned.get("offset") is None and "offset" not in self.errors:
            self.add_error("offset", "Say which offset.")
        return cleaned

    def position(self) -> tuple[int, int | None]:
        """(timestamp_ms, offset) as the gateway's plan_reset takes it."""
        wanted = self.cleaned_data
        if wanted["to"] == "offset":
            return TO_END, wanted["offset"]
        return {"end": TO_END, "begin": TO_BEGIN}.get(wanted["to"], wanted["at"]), None
