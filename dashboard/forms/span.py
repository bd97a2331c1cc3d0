"""From and to, as the searches of messages, traces and changes ask for them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy

from dashboard.cluster.message_scan import TimeSpan
from dashboard.forms.base import BaseForm
from dashboard.forms.fields import WhenField

_WHEN = {"placeholder": "1 h, 2026-11-21 07:30", "spellcheck": "false", "data-when": ""}


class SpanForm(BaseForm):
    """Both may be empty: no bound. `data-when` is what the time picker (when.js) looks for."""

    since = WhenField(label=pgettext_lazy("a time", "From"), required=False, widget=forms.TextInput(attrs=_WHEN))
    until = WhenField(label=pgettext_lazy("a time", "To"), required=False, widget=forms.TextInput(attrs=_WHEN))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        since, until = cleaned.get("since"), cleaned.get("until")
        if since is not None and until is not None and since > until:
            self.add_error("until", gettext("That is before the beginning."))
        return cleaned

    def span(self) -> TimeSpan:
        """Call it when the form is valid."""
        return TimeSpan(self.cleaned_data["since"], self.cleaned_data["until"])
