"""Which dead letters to put back, where to and how fast, and how many to discard: forms that pages and REST share."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.cluster.browse import CURSOR_CHARS_MAX
from dashboard.dead_letters.put_back import RATE_DEFAULT, RATE_MAX, TO_GROUP, TO_TOPIC, Wish
from dashboard.forms.base import BaseForm
from dashboard.messages.forms import MessageSearchForm

TO_CHOICES = [
    (TO_GROUP, _("This group only")),
    (TO_TOPIC, _("Their original topic: all its groups receive them")),
]


class PutBackForm(MessageSearchForm):
    """q, since, until and queue as of a search; `older` is where to go on."""

    to = forms.ChoiceField(label=_("Send to"), choices=TO_CHOICES, initial=TO_GROUP)
    rate = forms.IntegerField(label=_("Messages per second"), min_value=1, max_value=RATE_MAX, initial=RATE_DEFAULT)
    again = forms.BooleanField(label=_("Include messages resent before"), required=False)
    dry_run = forms.BooleanField(required=False)
    older = forms.CharField(required=False, max_length=CURSOR_CHARS_MAX)
    wanted = forms.IntegerField(required=False, min_value=0, max_value=(1 << 31) - 1)  # letters counted before

    def wish(self) -> Wish:
        """What is asked for; call it when the form is valid."""
        given = self.cleaned_data
        return Wish(self.search(), given["to"], given["rate"], given["again"], given["dry_run"])


class DiscardForm(BaseForm):
    """The safety catch before letters are lost: how many there are, typed."""

    letters = forms.IntegerField(label=_("Dead letters"), min_value=1)

    def __init__(self, *args: Any, stored: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = stored

    def clean_letters(self) -> int:
        given: int = self.cleaned_data["letters"]
        if given != self.stored:
            told = gettext(
                "There are %(stored)s now. Nothing was discarded. Pause the group if more keep arriving."
            ) % {"stored": self.stored}
            raise forms.ValidationError(told)
        return given
