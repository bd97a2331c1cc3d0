"""A change of many topics: the form that pages and REST share."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.topics.changes import TopicChange, What
from dashboard.topics.forms import PERM_CHOICES, PERMS, QUEUES_MAX, KeepForm

WHAT_CHOICES = [
    ("access", _("Access")),
    ("queues", _("Queues to read and to write")),
    ("keep", _("How long messages are kept")),
    ("skip", _("Reset all groups to the end: skip waiting messages")),
    ("again", _("Reset all groups to the beginning: read everything again")),
    ("delete", _("Delete")),
]
NEEDS = {"access": ("perm",), "queues": ("read_queues", "write_queues"), "keep": ("keep_for", "keep_messages")}


class TopicChangesForm(KeepForm):
    """What is to become of the chosen topics; of the fields behind `what` only those that it needs count."""

    what = forms.ChoiceField(label=_("Change"), choices=WHAT_CHOICES, initial="access")
    perm = forms.ChoiceField(label=_("Access"), choices=PERM_CHOICES, initial="read-write", required=False)
    read_queues = forms.IntegerField(
        label=_("Read queues"), required=False, min_value=1, max_value=QUEUES_MAX,
        help_text=_(
                "On each broker. Reduce write queues first; reduce read queues when the removed ones are "
                "read to their end."),
    )  # fmt: skip
    write_queues = forms.IntegerField(label=_("Write queues"), required=False, min_value=1, max_value=QUEUES_MAX)
    field_order = ("what", "perm", "read_queues", "write_queues", "keep_for", "keep_messages")
    use_required_attribute = False  # what is not shown does not count

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.data.get("what", "") if self.is_bound else None
        for what, names in NEEDS.items():
            for name in names:
                self.fields[name].widget.attrs["data-for"] = what
                self.fields[name].required = what != "keep" and chosen in (None, what)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("what") == "queues" and not self.errors and cleaned["read_queues"] < cleaned["write_queues"]:
            self.add_error(
                "read_queues", gettext("At least as many as write queues: messages of the others would never be read.")
            )
        return cleaned

    def wanted(self) -> TopicChange:
        """Of a valid form."""
        given = self.cleaned_data
        what = cast(What, given["what"])
        match what:
            case "access":
                return TopicChange(what, perm=PERMS[given["perm"]])
            case "queues":
                return TopicChange(what, read_queues=given["read_queues"], write_queues=given["write_queues"])
            case "keep":
                return TopicChange(what, retention_ms=given["keep_for"], retention_messages=given["keep_messages"])
        return TopicChange(what)
