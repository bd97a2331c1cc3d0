"""What a person asks of the traces. The page and REST take the same."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.cluster.message_scan import TimeSpan
from dashboard.forms.base import BaseForm
from dashboard.forms.fields import DurationField, WhenField
from dashboard.traces.events import ALL, FAILED, SLOW, TraceWish

TEXT_CHARS_MAX = 255
SLOW_MS = 1000
_WHEN = {"placeholder": "1 h, 2026-11-21 07:30", "spellcheck": "false", "data-when": ""}


class TraceForm(BaseForm):
    """Empty asks for the newest of all."""

    q = forms.CharField(label=_("Message id or key"), required=False, max_length=TEXT_CHARS_MAX, strip=True)
    topic = forms.CharField(label=_("Topic"), required=False, max_length=127, strip=True)
    group = forms.CharField(label=_("Group"), required=False, max_length=255, strip=True)
    which = forms.ChoiceField(
        label=_("Which"), required=False, choices=((ALL, _("all")), (FAILED, _("failed")), (SLOW, _("slow")))
    )
    slow = DurationField(label=_("Slow is"), required=False)
    since = WhenField(label=pgettext_lazy("a time", "From"), required=False, widget=forms.TextInput(attrs=_WHEN))
    until = WhenField(label=pgettext_lazy("a time", "To"), required=False, widget=forms.TextInput(attrs=_WHEN))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        since, until = cleaned.get("since"), cleaned.get("until")
        if since is not None and until is not None and since > until:
            self.add_error("until", gettext("That is before the beginning."))
        return cleaned

    def wish(self) -> TraceWish:
        """What is asked for; call it when the form is valid."""
        given = self.cleaned_data
        slow_ms = SLOW_MS if given["slow"] is None else given["slow"]
        return TraceWish(given["q"], given["topic"], given["group"], given["which"] or ALL, slow_ms)

    def span(self) -> TimeSpan:
        return TimeSpan(self.cleaned_data["since"], self.cleaned_data["until"])
