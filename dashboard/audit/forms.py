"""What a person asks of the audit log. Page, exports and REST take the same."""

from __future__ import annotations

from datetime import UTC, datetime

from django import forms
from django.utils.translation import gettext_lazy as _

from dashboard.audit.listing import Asked
from dashboard.forms.span import SpanForm
from dashboard.models.audit import Result, Way


class AuditForm(SpanForm):
    """Empty asks for all, but for the calls of the appliance itself."""

    q = forms.CharField(label=_("Find"), required=False, max_length=200, strip=True)
    who = forms.CharField(required=False, max_length=160, strip=True)
    way = forms.ChoiceField(required=False, choices=[("", _("Any source")), *Way.choices])
    result = forms.ChoiceField(required=False, choices=[("", _("Any result")), *Result.choices])
    own = forms.BooleanField(required=False)

    def asked(self) -> Asked:
        """Call it when the form is valid."""
        given = self.cleaned_data
        return Asked(
            text=given["q"],
            who=given["who"],
            way=given["way"],
            result=given["result"],
            since=_moment(given["since"]),
            until=_moment(given["until"]),
            with_own=given["own"],
        )


def _moment(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
