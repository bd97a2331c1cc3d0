"""What people and programs may ask for, checked in one place: pages and REST validate with the same forms."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib.auth.password_validation import validate_password

from dashboard.accounts.tokens import TOKEN_LIFE_DAYS
from dashboard.forms.fields import DurationField, parse_duration, parse_moment
from dashboard.models.management import ApiToken, User
from gantrymq.message.topics import DLQ_PREFIX, RETRY_PREFIX, TOPIC_CHARS_MAX, is_system_topic
from gantrymq.remoting.bodies import PERM_READ, PERM_WRITE

QUEUES_MAX = 256  # of one topic on one broker
BODY_BYTES_MAX = 4 * 1024 * 1024  # what a broker takes (maxMessageSize)
PROPERTY_LINES_MAX = 64
PERMS = {"read-write": PERM_READ | PERM_WRITE, "read": PERM_READ, "write": PERM_WRITE}
PERM_CHOICES = [("read-write", "Read and write"), ("read", "Read only"), ("write", "Write only")]
_DELAYS = ("1 s", "5 s", "10 s", "30 s", *(f"{minutes} min" for minutes in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30)),
           "1 h", "2 h")  # fmt: skip
DELAY_LEVELS = [(0, "None"), *((level, f"{level} · {delay}") for level, delay in enumerate(_DELAYS, start=1))]
# What the properties text must not hold: the separators of the stored form, and names the protocol uses itself.
_SEPARATORS = re.compile("[\x00-\x08\x0b-\x1f]")
_RESERVED_PROPERTIES = frozenset(
    {"KEYS", "TAGS", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP", "MIN_OFFSET",
     "MAX_OFFSET", "BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG", "RECONSUME_TIME",
     "MSG_REGION", "TRACE_ON", "UNIQ_KEY", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "INSTANCE_ID", "CLUSTER"}
)  # fmt: skip


class BaseForm(forms.Form):
    """A form whose fields carry what accessibility needs: an error is tied to its field."""

    template_name = "_form.html"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs.setdefault("autocomplete", "off")

    def problems(self) -> dict[str, list[str]]:
        """Field to sentences; what REST answers with 422."""
        return {name: [str(text) for text in texts] for name, texts in self.errors.items()}


class TopicSettingsForm(BaseForm):
    """A topic's settings, the same on each broker that holds it."""

    queues = forms.IntegerField(
        label="Queues", min_value=1, max_value=QUEUES_MAX, initial=8,
        help_text="On each broker. More queues let more consumers of one group share the work.",
    )  # fmt: skip
    perm = forms.ChoiceField(
        label="Access", choices=PERM_CHOICES, initial="read-write", help_text="What clients may do with it."
    )

    keep_for = DurationField(
        label="Keep for", required=False, help_text="Like 12 h or 7 d. Empty: as long as the brokers keep messages.",
        widget=forms.TextInput(attrs={"placeholder": "7 d", "spellcheck": "false"}),
    )  # fmt: skip
    keep_messages = forms.IntegerField(
        label="Keep at most", required=False, min_value=1, max_value=(1 << 53),
        help_text="Messages of each queue. Empty: no limit.",
    )  # fmt: skip

    def clean_perm(self) -> int:
        return PERMS[self.cleaned_data["perm"]]


class TopicForm(TopicSettingsForm):
    """A new topic."""

    name = forms.CharField(
        label="Name", max_length=TOPIC_CHARS_MAX, strip=True,
        help_text="Letters, digits, - and _. It can't be changed later.",
        widget=forms.TextInput(attrs={"placeholder": "orders", "spellcheck": "false", "autofocus": True}),
    )  # fmt: skip
    order = forms.BooleanField(
        label="Ordered", required=False,
        help_text="Keep the set of queues steady while a broker is away, so that order by key holds.",
    )  # fmt: skip
    field_order = ("name", "queues", "perm", "keep_for", "keep_messages", "order")

    def clean_name(self) -> str:
        name = self.cleaned_data["name"]
        if not re.fullmatch(r"[%|a-zA-Z0-9_-]+", name):
            raise forms.ValidationError("Only letters, digits, - and _ (and % and |).")
        if name.startswith((RETRY_PREFIX, DLQ_PREFIX)):
            raise forms.ValidationError("Retry and dead-letter topics are made by the brokers.")
        if is_system_topic(name):
            raise forms.ValidationError("This name belongs to the brokers.")
        return name


class TypedNameForm(BaseForm):
    """The safety catch before something is lost: its name, typed."""

    typed_name = forms.CharField(label="Name", strip=True, widget=forms.TextInput(attrs={"spellcheck": "false"}))

    def __init__(self, *args: Any, name: str, undone: str = "deleted", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = name
        self.undone = undone

    def clean_typed_name(self) -> str:
        if self.cleaned_data["typed_name"] != self.name:
            raise forms.ValidationError("That is not the name. Nothing was " + self.undone + ".")
        return self.name


class TestMessageForm(BaseForm):
    """A message to send by hand."""

    __test__ = False  # not a test, whatever pytest makes of the name

    tag = forms.CharField(label="Tag", required=False, max_length=127, help_text="What subscriptions select by.")
    key = forms.CharField(label="Key", required=False, max_length=255, help_text="Makes the message searchable.")
    properties = forms.CharField(
        label="Properties", required=False, strip=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "name=value, one a line", "spellcheck": "false"}),
    )  # fmt: skip
    body = forms.CharField(
        label="Body", required=False, strip=False,
        widget=forms.Textarea(attrs={"rows": 5, "placeholder": '{"hello": "world"}', "spellcheck": "false"}),
    )  # fmt: skip
    delay_level = forms.ChoiceField(
        label="Delay level", required=False, choices=DELAY_LEVELS, initial=0,
        help_text="RocketMQ's own; the times are those of a broker that was not told others.",
    )  # fmt: skip
    deliver = forms.CharField(
        label="Or deliver in / at", required=False, max_length=40,
        help_text="90 s, 2 h, or 2026-11-21 07:30 (UTC). Empty: at once.",
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
            self.add_error("deliver", "Give a delay level or a time, not both.")
        return cleaned

    def clean_tag(self) -> str:
        tag = self.cleaned_data["tag"]
        if _SEPARATORS.search(tag) or "||" in tag:
            raise forms.ValidationError("Control characters and || can't be part of a tag.")
        return tag

    def clean_key(self) -> str:
        if _SEPARATORS.search(self.cleaned_data["key"]):
            raise forms.ValidationError("Control characters can't be part of a key.")
        return self.cleaned_data["key"]

    def clean_properties(self) -> dict[str, str]:
        """The lines as a table."""
        table: dict[str, str] = {}
        lines = [line for line in self.cleaned_data["properties"].splitlines() if line.strip()]
        if len(lines) > PROPERTY_LINES_MAX:
            raise forms.ValidationError(f"At most {PROPERTY_LINES_MAX} properties.")
        for line in lines:
            name, equals, value = line.partition("=")
            name = name.strip()
            if not equals or not name:
                raise forms.ValidationError(f"“{line.strip()}” is not name=value.")
            if name.upper() in _RESERVED_PROPERTIES or name.upper().startswith("TIMER_"):
                raise forms.ValidationError(f"{name} is a property of the protocol itself.")
            if _SEPARATORS.search(name + value):
                raise forms.ValidationError("Control characters can't be part of a property.")
            table[name] = value.strip()
        return table

    def clean_body(self) -> bytes:
        # Browsers send line ends as CR LF; the person typed a line end.
        body = self.cleaned_data["body"].replace("\r\n", "\n").encode()
        if len(body) > BODY_BYTES_MAX:
            raise forms.ValidationError("A message may have 4 MiB.")
        return body


class LoginForm(BaseForm):
    """Name and password."""

    username = forms.CharField(label="Name", max_length=64, widget=forms.TextInput(
        attrs={"autocomplete": "username", "autofocus": True, "autocapitalize": "none"}))  # fmt: skip
    password = forms.CharField(label="Password", max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "current-password"}))  # fmt: skip


class FirstRunForm(BaseForm):
    """The first administrator."""

    username = forms.CharField(label="Your name", max_length=64, initial="admin", widget=forms.TextInput(
        attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}))  # fmt: skip
    password = forms.CharField(
        label="Password", max_length=1024, strip=False, help_text="At least ten characters, and not a common one.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "autofocus": True}),
    )  # fmt: skip
    again = forms.CharField(label="Password again", max_length=1024, strip=False, widget=forms.PasswordInput(
        attrs={"autocomplete": "new-password"}))  # fmt: skip

    def clean_username(self) -> str:
        username = self.cleaned_data["username"]
        for validator in User._meta.get_field("username").validators:
            validator(username)
        return username

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        password = cleaned.get("password")
        if password and "username" in cleaned:
            try:
                validate_password(password, User(username=cleaned["username"]))
            except forms.ValidationError as exc:
                self.add_error("password", exc)
        if password and cleaned.get("again") not in (None, password):
            self.add_error("again", "The two passwords differ.")
        return cleaned


class TokenForm(BaseForm):
    """A new API token."""

    name = forms.CharField(label="What for", max_length=64, widget=forms.TextInput(attrs={"placeholder": "CI"}))
    scope = forms.ChoiceField(label="May", choices=ApiToken.Scope.choices, initial=ApiToken.Scope.READ)
    life_days = forms.TypedChoiceField(
        label="Ends after", coerce=int, choices=[(days, f"{days} days") for days in TOKEN_LIFE_DAYS], initial=90
    )
