"""What a person asks of the traces. The page and REST take the same."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.forms.fields import DurationField
from dashboard.forms.span import SpanForm
from dashboard.messages.trace_events import ALL, FAILED, SLOW, TraceWish

TEXT_CHARS_MAX = 255
SLOW_MS = 1000


class TraceForm(SpanForm):
    """Empty asks for the newest of all."""

    q = forms.CharField(label=_("Message id or key"), required=False, max_length=TEXT_CHARS_MAX, strip=True)
    topic = forms.CharField(label=_("Topic"), required=False, max_length=127, strip=True)
    group = forms.CharField(label=_("Group"), required=False, max_length=255, strip=True)
    which = forms.ChoiceField(
        label=_("Which"), required=False, choices=((ALL, _("all")), (FAILED, _("failed")), (SLOW, _("slow")))
    )
    slow = DurationField(label=_("Slow from"), required=False)

    def wish(self) -> TraceWish:
        """What is asked for; call it when the form is valid."""
        given = self.cleaned_data
        slow_ms = SLOW_MS if given["slow"] is None else given["slow"]
        return TraceWish(given["q"], given["topic"], given["group"], given["which"] or ALL, slow_ms)
