"""A topic's settings, and a new topic: the forms that pages and REST share."""

from __future__ import annotations

import re
from typing import Any, cast

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.forms.base import BaseForm
from dashboard.forms.fields import DurationField
from dashboard.topics.changes import PERM_WORDS, TopicChange, What
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, TOPIC_CHARS_MAX, is_system_topic

QUEUES_MAX = 256  # of one topic on one broker
PERMS = {word: perm for perm, word in PERM_WORDS.items()}
PERM_CHOICES = [
    ("read-write", _("Read and write")),
    ("read", _("Read only")),
    ("write", _("Write only")),
]


class KeepForm(BaseForm):
    """How long a topic's messages are kept, and how many."""

    keep_for = DurationField(
        label=_("Keep for"), required=False,
        help_text=_("Such as 12 h or 7 d. Empty: the broker's retention."),
        widget=forms.TextInput(attrs={"placeholder": "7 d", "spellcheck": "false"}),
    )  # fmt: skip
    keep_messages = forms.IntegerField(
        label=_("Keep at most"), required=False, min_value=1, max_value=(1 << 53),
        help_text=_("Messages of each queue. Empty: no limit."),
    )  # fmt: skip


class TopicSettingsForm(KeepForm):
    """A topic's settings, the same on each broker that holds it."""

    queues = forms.IntegerField(
        label=_("Queues"), min_value=1, max_value=QUEUES_MAX, initial=8,
        help_text=_("On each broker. More queues let more consumers of one group share the work."),
    )  # fmt: skip
    perm = forms.ChoiceField(
        label=_("Access"),
        choices=PERM_CHOICES,
        initial="read-write",
        help_text=_("What clients may do with it."),
    )

    def clean_perm(self) -> int:
        return PERMS[self.cleaned_data["perm"]]


class TopicChangeForm(TopicSettingsForm):
    """The settings of a topic that is there. read_queues: empty is as many as are written."""

    read_queues = forms.IntegerField(
        label=_("Read queues"), required=False, min_value=1, max_value=QUEUES_MAX,
        help_text=_(
                "More than write queues while removed queues are read to their end. Empty: as many as write "
                "queues."),
    )  # fmt: skip
    field_order = ("queues", "read_queues", "perm", "keep_for", "keep_messages")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["queues"].label = gettext("Write queues")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if "queues" in cleaned and (cleaned.get("read_queues") or QUEUES_MAX) < cleaned["queues"]:
            self.add_error(
                "read_queues", gettext("At least as many as write queues: messages of the others would never be read.")
            )
        return cleaned


class TopicForm(TopicSettingsForm):
    """A new topic."""

    name = forms.CharField(
        label=_("Name"), max_length=TOPIC_CHARS_MAX, strip=True,
        help_text=_("Letters, digits, - and _. It can't be changed later."),
        widget=forms.TextInput(attrs={"placeholder": "orders", "spellcheck": "false", "autofocus": True}),
    )  # fmt: skip
    order = forms.BooleanField(
        label=_("Ordered"), required=False,
        help_text=_("Keeps the set of queues constant while a broker is away, so that order by key holds."),
    )  # fmt: skip
    field_order = ("name", "queues", "perm", "keep_for", "keep_messages", "order")

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if problem := name_problem(name):
            raise forms.ValidationError(problem)
        return name


def name_problem(name: str) -> str:
    """Why a new topic can't have this name; "" when it can."""
    if not re.fullmatch(r"[%|a-zA-Z0-9_-]+", name):
        return gettext("Only letters, digits, - and _ (and % and |).")
    if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return gettext("Brokers create retry and dead-letter topics.")
    return gettext("This name belongs to the brokers.") if is_system_topic(name) else ""


WHAT_CHOICES = [
    ("perm", _("Access")),
    ("queues", _("Queues to read and to write")),
    ("retention", _("How long messages are kept")),
    ("reset-to-end", _("Reset all groups to the end: skip waiting messages")),
    ("reset-to-begin", _("Reset all groups to the beginning: read everything again")),
    ("delete", _("Delete")),
]
NEEDS = {"perm": ("perm",), "queues": ("read_queues", "write_queues"), "retention": ("keep_for", "keep_messages")}


class TopicChangesForm(KeepForm):
    """What is to become of the chosen topics; of the fields behind `what` only those that it needs count."""

    what = forms.ChoiceField(label=_("Change"), choices=WHAT_CHOICES, initial="perm")
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
                self.fields[name].required = what != "retention" and chosen in (None, what)

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
            case "perm":
                return TopicChange(what, perm=PERMS[given["perm"]])
            case "queues":
                return TopicChange(what, read_queues=given["read_queues"], write_queues=given["write_queues"])
            case "retention":
                return TopicChange(what, retention_ms=given["keep_for"], retention_messages=given["keep_messages"])
        return TopicChange(what)
