"""Alarms: a rule, a channel of each kind, a mute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import get_language, gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from dashboard.alerts.editing import CHANNELS_MAX, NotTaken, RuleValues
from dashboard.alerts.kinds import KINDS
from dashboard.alerts.sending.channel_kinds import KINDS as KINDS_OF_CHANNELS
from dashboard.forms.base import BaseForm
from dashboard.forms.fields import DurationField, duration_text, parse_duration, parse_moment
from dashboard.models.alerts import AlertChannel, AlertRule, ChannelKind
from dashboard.status.check import Level

Choices = Sequence[tuple[str, str]]


class RuleForm(BaseForm):
    """One rule."""

    name = forms.CharField(label=_("Name"), max_length=AlertRule.NAME_MAX)
    kind = forms.ChoiceField(
        label=_("Condition"), choices=lambda: [(kind.key, f"{kind.words} ({kind.unit})") for kind in KINDS.values()]
    )
    threshold = forms.FloatField(label=_("Threshold"), help_text=_("In the unit in brackets."))
    clear = forms.FloatField(
        label=_("Resolves at"),
        required=False,
        help_text=_(
            "A little below or above the threshold, so that a value that moves around it opens one alert only."
        ),
    )
    for_s = DurationField(
        label=_("For at least"),
        required=False,
        least_ms=0,
        help_text=_("How long the condition must last: 30 s, 5 min."),
    )
    clear_s = DurationField(
        label=pgettext_lazy("an alert", "Resolves after"),
        required=False,
        least_ms=0,
        help_text=_("How long the value must stay past it."),
    )
    pattern = forms.CharField(
        label=_("Applies to"),
        max_length=AlertRule.PATTERN_MAX,
        required=False,
        help_text=_("Names of groups, topics or brokers; * matches any text: orders-*"),
    )
    level = forms.ChoiceField(
        label=_("Severity"), choices=[(str(int(Level.WARN)), _("attention")), (str(int(Level.BAD)), _("problem"))]
    )
    channels = forms.MultipleChoiceField(
        label=_("Tells"), required=False, widget=forms.CheckboxSelectMultiple, help_text=_("None chosen: all of them.")
    )
    is_on = forms.BooleanField(label=_("On"), required=False, initial=True)

    def __init__(self, *args: Any, channels: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["channels"].choices = channels  # type: ignore[attr-defined]
        if not channels:
            del self.fields["channels"]

    def values(self) -> RuleValues:
        """What was given, for editing.save_rule."""
        known = self.cleaned_data
        return RuleValues(
            name=known["name"],
            kind=known["kind"],
            pattern=known["pattern"],
            threshold=known["threshold"],
            clear=known["clear"],
            for_s=(known["for_s"] or 0) / 1000,
            clear_s=(known["clear_s"] or 0) / 1000,
            level=int(known["level"]),
            is_on=known["is_on"],
            channels=[int(key) for key in known.get("channels", ())],
        )

    def refuse(self, refused: NotTaken) -> None:
        refuse(self, refused)


def rule_initial(row: AlertRule, channels: Sequence[int]) -> dict[str, Any]:
    """The form of a rule that is there."""
    return {
        "name": row.name,
        "kind": row.kind,
        "threshold": _number(row.threshold),
        "clear": _number(row.clear),
        "for_s": duration_text(round(row.for_s * 1000)) if row.for_s else "",
        "clear_s": duration_text(round(row.clear_s * 1000)) if row.clear_s else "",
        "pattern": row.pattern,
        "level": str(row.level),
        "channels": [str(key) for key in channels],
        "is_on": row.is_on,
    }


_AS_TYPED = {"autocomplete": "off", "spellcheck": "false"}


def _hidden() -> forms.PasswordInput:
    return forms.PasswordInput(attrs={"autocomplete": "new-password"})


class ChannelForm(BaseForm):
    """One channel; the fields are those of its kind."""

    name = forms.CharField(label=_("Name"), max_length=AlertChannel.NAME_MAX)
    host = forms.CharField(label=_("Mail server"), max_length=255)
    port = forms.IntegerField(label=_("Port"), min_value=1, max_value=65535, initial=587)
    security = forms.ChoiceField(
        label=_("Security"), choices=[("starttls", _("STARTTLS")), ("tls", _("TLS")), ("none", _("none"))]
    )
    username = forms.CharField(label=_("Account"), max_length=255, required=False)
    password = forms.CharField(
        label=_("Password"),
        max_length=1024,
        required=False,
        strip=False,
        widget=_hidden(),
    )
    sender = forms.CharField(label=pgettext_lazy("a mail", "From"), max_length=255)
    recipients = forms.CharField(
        label=pgettext_lazy("a mail", "To"), max_length=2000, help_text=_("Addresses, separated by commas.")
    )
    url = forms.CharField(
        label=_("Address"),
        max_length=2000,
        widget=forms.PasswordInput(attrs=_AS_TYPED),
        help_text=_("It is not shown again."),
    )
    secret = forms.CharField(
        label=_("Secret of the signature"),
        max_length=1024,
        required=False,
        strip=False,
        widget=_hidden(),
    )
    endpoint = forms.CharField(label=_("Address"), max_length=2000, widget=forms.TextInput(attrs=_AS_TYPED))
    routing_key = forms.CharField(label=_("Integration key"), max_length=64, widget=_hidden())
    api_key = forms.CharField(label=_("API key"), max_length=100, widget=_hidden())
    language = forms.ChoiceField(
        label=_("Language of notifications"), choices=settings.LANGUAGES, required=False, initial=get_language
    )
    is_on = forms.BooleanField(label=_("On"), required=False, initial=True)

    def __init__(self, *args: Any, kind: str, has_one: bool = False, **kwargs: Any) -> None:
        declared = KINDS_OF_CHANNELS[kind]
        kwargs["initial"] = {**declared.defaults, **kwargs.get("initial", {})}
        super().__init__(*args, **kwargs)
        for name in [name for name in self.fields if name not in ("name", "is_on", "language", *declared.settings)]:
            del self.fields[name]
        for name, text in declared.help.items():
            self.fields[name].help_text = gettext(text)
        if has_one:
            for name in declared.secrets:
                self.fields[name].required = False
                self.fields[name].help_text = gettext("Leave empty to keep the current value.")
                if name != "url":
                    self.fields[name].help_text += " " + gettext("If the server changes, enter it again.")
        elif kind == ChannelKind.WEBHOOK:
            self.fields["secret"].help_text = gettext("If left empty, one is generated and shown once.")

    def settings(self) -> Mapping[str, Any]:
        return {key: value for key, value in self.cleaned_data.items() if key not in ("name", "is_on")}

    def refuse(self, refused: NotTaken) -> None:
        refuse(self, refused)


class MuteForm(BaseForm):
    """Which rule's notices to hold back, and until when."""

    rule = forms.ChoiceField(label=_("Rule"), required=False)
    pattern = forms.CharField(
        label=_("Applies to"),
        max_length=AlertRule.PATTERN_MAX,
        required=False,
        help_text=_("* matches any text. Empty: everything."),
    )
    until = forms.CharField(
        label=_("Ends"),
        max_length=40,
        initial="1 h",
        help_text=_("After 30 min, 2 h or 1 d, or at a time: 2026-11-23 18:00, UTC."),
    )
    reason = forms.CharField(label=_("Why"), max_length=200)

    def __init__(self, *args: Any, rules: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["rule"].choices = [("", gettext("every rule")), *rules]  # type: ignore[attr-defined]

    def clean_until(self) -> datetime:
        text = self.cleaned_data["until"].strip()
        now_ms = datetime.now(UTC).timestamp() * 1000
        try:
            at_ms = now_ms + parse_duration(text)
        except forms.ValidationError:
            at_ms = parse_moment(text)
        try:
            return datetime.fromtimestamp(at_ms / 1000, UTC)
        except (ValueError, OverflowError):
            raise forms.ValidationError(gettext("That time is too far in the future.")) from None

    def refuse(self, refused: NotTaken) -> None:
        refuse(self, refused)


def refuse(form: BaseForm, refused: NotTaken) -> None:
    """Put what was refused beside its fields."""
    for field, texts in refused.problems.items():
        for text in texts:
            form.add_error(field if field in form.fields else None, text)


def choices_of(channels: Sequence[AlertChannel]) -> Choices:
    return [(str(channel.pk), f"{channel.name} ({channel.get_kind_display()})") for channel in channels[:CHANNELS_MAX]]


def _number(value: float) -> str:
    return f"{value:g}"
