"""What a person asks of a topic's messages: the box, from and to, a queue. Pages, exports and REST take the same."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.cluster.message_query import QUERY_CHARS_MAX, understand
from dashboard.cluster.message_scan import TimeSpan
from dashboard.cluster.message_search import Search
from dashboard.forms.base import BaseForm
from dashboard.forms.fields import WhenField

_WHEN = {"placeholder": "1 h, 2026-11-21 07:30", "spellcheck": "false", "data-when": ""}


class MessageSearchForm(BaseForm):
    """Empty asks for the newest of all."""

    q = forms.CharField(label=_("Find"), required=False, max_length=QUERY_CHARS_MAX, strip=True)
    since = WhenField(label=pgettext_lazy("a time", "From"), required=False, widget=forms.TextInput(attrs=_WHEN))
    until = WhenField(label=pgettext_lazy("a time", "To"), required=False, widget=forms.TextInput(attrs=_WHEN))
    queue = forms.CharField(required=False, max_length=300)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        query = understand(cleaned.get("q") or "")
        if query.problem:
            self.add_error("q", query.problem)
        since, until = cleaned.get("since"), cleaned.get("until")
        if since is not None and until is not None and since > until:
            self.add_error("until", gettext("That is before the beginning."))
        return cleaned

    def search(self) -> Search:
        """What is asked for; call it when the form is valid."""
        given = self.cleaned_data
        span = TimeSpan(given["since"], given["until"])
        return Search(understand(given["q"]), span, given["queue"] or None)
