"""A message to send by hand."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dashboard.cluster.message_query import QUERY_CHARS_MAX, understand
from dashboard.cluster.message_search import Search
from dashboard.cluster.units import duration
from dashboard.forms.base import BaseForm
from dashboard.forms.fields import DurationField, parse_duration, parse_moment
from dashboard.forms.span import SpanForm
from dashboard.messages.trace_events import ALL, FAILED, SLOW, TraceWish
from dashboard.models.saved_searches import SavedSearch

BODY_BYTES_MAX = 4 * 1024 * 1024  # what a broker takes (maxMessageSize)
PROPERTY_LINES_MAX = 64
DELAYS_S = (1, 5, 10, 30, *(60 * minutes for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)), 3600, 7200)


def delay_levels() -> list[tuple[int, Any]]:
    """RocketMQ's levels with their delays, in the language of the page."""
    delays = enumerate(DELAYS_S, start=1)
    return [(0, _("None")), *((level, f"{level} · {duration(delay_s)}") for level, delay_s in delays)]


# What the properties text must not hold: the separators of the stored form, and names the protocol uses itself.
_SEPARATORS = re.compile("[\x00-\x08\x0b-\x1f]")
_RESERVED_PROPERTIES = frozenset(
    {"KEYS", "TAGS", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP", "MIN_OFFSET",
     "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG", "RECONSUME_TIME",
     "MSG_REGION", "TRACE_ON", "UNIQ_KEY", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "INSTANCE_ID", "CLUSTER"}
)  # fmt: skip


class TestMessageForm(BaseForm):
    """A message to send by hand."""

    __test__ = False  # not a test, whatever pytest makes of the name

    tag = forms.CharField(
        label=_("Tag"),
        required=False,
        max_length=127,
        help_text=_("Subscriptions select messages by tag."),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=255,
        help_text=_("Makes the message searchable."),
    )
    properties = forms.CharField(
        label=_("Properties"), required=False, strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": _("name=value, one per line"), "spellcheck": "false"}),
    )  # fmt: skip
    body = forms.CharField(
        label=_("Body"), required=False, strip=False,
        widget=forms.Textarea(attrs={"rows": 5, "placeholder": '{"hello": "world"}', "spellcheck": "false"}),
    )  # fmt: skip
    delay_level = forms.ChoiceField(
        label=_("Delay level"), required=False, choices=delay_levels, initial=0,
        help_text=_("RocketMQ's own; the delays are a broker's defaults."),
    )  # fmt: skip
    deliver = forms.CharField(
        label=_("Or deliver in / at"), required=False, max_length=40,
        help_text=_("90 s, 2 h, or 2026-11-21 07:30 (UTC). Empty: at once."),
        widget=forms.TextInput(attrs={"placeholder": "90 s", "spellcheck": "false"}),
    )  # fmt: skip
    field_order = ("tag", "key", "body", "properties", "delay_level", "deliver")

    def clean_delay_level(self) -> int:
        return int(self.cleaned_data["delay_level"] or 0)

    def clean_deliver(self) -> dict[str, float]:
        """{} at once, {"delay_seconds": s} or {"deliver_at": epoch seconds}: what a Message takes."""
        text = self.cleaned_data["deliver"].strip()
        if not text:
            return {}
        if "-" in text:
            return {"deliver_at": parse_moment(text) / 1000}
        return {"delay_seconds": parse_duration(text) / 1000}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("delay_level") and cleaned.get("deliver"):
            self.add_error("deliver", gettext("Give a delay level or a time, not both."))
        return cleaned

    def clean_tag(self) -> str:
        tag = self.cleaned_data["tag"]
        if _SEPARATORS.search(tag) or "||" in tag:
            raise forms.ValidationError(gettext("Control characters and || can't be part of a tag."))
        return tag

    def clean_key(self) -> str:
        if _SEPARATORS.search(self.cleaned_data["key"]):
            raise forms.ValidationError(gettext("Control characters can't be part of a key."))
        return self.cleaned_data["key"]

    def clean_properties(self) -> dict[str, str]:
        """The lines as a table."""
        table: dict[str, str] = {}
        lines = [line for line in self.cleaned_data["properties"].splitlines() if line.strip()]
        if len(lines) > PROPERTY_LINES_MAX:
            raise forms.ValidationError(
                gettext("At most %(property_lines_max)s properties.") % {"property_lines_max": PROPERTY_LINES_MAX}
            )
        for line in lines:
            name, equals, value = line.partition("=")
            name = name.strip()
            if not equals or not name:
                raise forms.ValidationError(gettext("“%(line)s” is not name=value.") % {"line": line.strip()})
            if name.upper() in _RESERVED_PROPERTIES or name.upper().startswith("TIMER_"):
                raise forms.ValidationError(gettext("%(name)s is a property of the protocol itself.") % {"name": name})
            if _SEPARATORS.search(name + value):
                raise forms.ValidationError(gettext("Control characters can't be part of a property."))
            table[name] = value.strip()
        return table

    def clean_body(self) -> bytes:
        # Browsers send line ends as CR LF; the person typed a line end.
        body = self.cleaned_data["body"].replace("\r\n", "\n").encode()
        if len(body) > BODY_BYTES_MAX:
            raise forms.ValidationError(gettext("A message can have up to 4 MiB."))
        return body


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


class SaveSearchForm(BaseForm):
    """What a search is kept as."""

    name = forms.CharField(label=_("Name"), max_length=SavedSearch.NAME_MAX)


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
