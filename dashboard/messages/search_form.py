"""What a person asks of a topic's messages: the box, from and to, a queue. Pages, exports and REST take the same."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.cluster.message_query import QUERY_CHARS_MAX, understand
from dashboard.cluster.message_search import Search
from dashboard.forms.span import SpanForm


class MessageSearchForm(SpanForm):
    """Empty asks for the newest of all."""

    q = forms.CharField(label=_("Find"), required=False, max_length=QUERY_CHARS_MAX, strip=True)
    queue = forms.CharField(required=False, max_length=300)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        query = understand(cleaned.get("q") or "")
        if query.problem:
            self.add_error("q", query.problem)
        return cleaned

    def search(self) -> Search:
        """What is asked for; call it when the form is valid."""
        given = self.cleaned_data
        return Search(understand(given["q"]), self.span(), given["queue"] or None)
