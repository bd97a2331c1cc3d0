"""What is asked before a consumer group changes: how it consumes, and where it is to go on, as REST has it too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.forms.base import BaseForm
from dashboard.forms.fields import PastMomentField
from gantrymq.client.admin.offsets import TO_END
from gantrymq.message.topics import GROUP_CHARS_MAX

TO_BEGIN = 0
OFFSET_MAX = (1 << 63) - 1
TOPICS_MAX = 64
TO_CHOICES = [
    ("end", _("End: skip waiting messages")),
    ("begin", _("Beginning: read everything again")),
    ("time", _("A time")),
    ("offset", _("An offset")),
    ("shift", _("Number of messages forward or back")),
    ("copy", _("Offsets of another group")),
    ("undo", _("Undo the last reset (24 hours)")),
]


class ModeForm(BaseForm):
    """How the group consumes a topic from now on."""

    topic = forms.ChoiceField(label=_("Topic"))
    mode = forms.ChoiceField(
        label=_("Mode"),
        choices=[("POP", _("POP: RocketMQ 5, PopConsumer")), ("PULL", _("Pulling: all other clients"))],
    )

    def __init__(self, *args: Any, modes: Mapping[str, str], topics: Sequence[str], **kwargs: Any) -> None:
        """modes: those of topics now, if brokers say one."""
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [(name, name) for name in sorted({*topics, *modes})]  # type: ignore[attr-defined]
        self.initial.setdefault("mode", "PULL" if "POP" in modes.values() else "POP")


class ResetForm(BaseForm):
    """Topics, and where to. `position()` gives (timestamp in ms, offset or None) of a time, an offset, an end."""

    topic = forms.MultipleChoiceField(
        label=_("Topics"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one topic.")},
    )
    to = forms.ChoiceField(label=_("Start at"), choices=TO_CHOICES, initial="end")
    at = PastMomentField(
        label=_("Time (UTC)"), required=False,
        help_text=_("What was stored from then on. Give a zone if it is not UTC, or how long ago: 2 h."),
        widget=forms.TextInput(
            attrs={
                "placeholder": _("2026-11-21 07:30, or 2 h"), "spellcheck": "false", "data-when": "to=time",
                "data-for": "time",
            }
        ),
    )  # fmt: skip
    offset = forms.IntegerField(
        label=_("Offset"), required=False, min_value=0, max_value=OFFSET_MAX,
        widget=forms.NumberInput(attrs={"data-for": "offset"}),
        help_text=_("In every queue. Queues that do not reach so far use their nearest offset."),
    )  # fmt: skip

    by = forms.IntegerField(
        label=_("Messages"), required=False, min_value=-OFFSET_MAX, max_value=OFFSET_MAX,
        widget=forms.NumberInput(attrs={"data-for": "shift"}),
        help_text=_("In every queue: 100 skips a hundred, -100 reads them again."),
    )  # fmt: skip
    source = forms.CharField(
        label=_("Other group"), required=False, max_length=GROUP_CHARS_MAX,
        widget=forms.TextInput(attrs={"data-for": "copy"}),
        help_text=_("Queues without an offset of the group stay unchanged."),
    )  # fmt: skip

    def __init__(self, *args: Any, topics: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["topic"].choices = [(name, name) for name in topics]  # type: ignore[attr-defined]
        if len(topics) == 1:
            self.initial.setdefault("topic", topics)

    def clean_topic(self) -> list[str]:
        chosen: list[str] = self.cleaned_data["topic"]
        if len(chosen) > TOPICS_MAX:
            raise forms.ValidationError(gettext("At most %(topics_max)s at once.") % {"topics_max": TOPICS_MAX})
        return list(dict.fromkeys(chosen))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("to") == "time" and cleaned.get("at") is None and "at" not in self.errors:
            self.add_error("at", gettext("Enter a time."))
        if cleaned.get("to") == "offset" and cleaned.get("offset") is None and "offset" not in self.errors:
            self.add_error("offset", gettext("Enter an offset."))
        if cleaned.get("to") == "shift" and not cleaned.get("by") and "by" not in self.errors:
            self.add_error("by", gettext("Enter a number of messages."))
        if cleaned.get("to") == "copy" and not cleaned.get("source") and "source" not in self.errors:
            self.add_error("source", gettext("Choose a group."))
        return cleaned

    def position(self) -> tuple[int, int | None]:
        """(timestamp_ms, offset) as the gateway's plan_reset takes it."""
        wanted = self.cleaned_data
        if wanted["to"] == "offset":
            return TO_END, wanted["offset"]
        return {"end": TO_END, "begin": TO_BEGIN}.get(wanted["to"], wanted["at"]), None
