"""Rules, channels and mutes as pages and REST make them: checked in one place. Blocking where it writes."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from dashboard.alerts.kinds import KINDS
from dashboard.alerts.rules import RULES_MAX, changes
from dashboard.alerts.sending.channel_kinds import KINDS as KINDS_OF_CHANNELS
from dashboard.alerts.sending.channel_kinds import Kind
from dashboard.alerts.sending.incidents import ROUTING_KEY_CHARS
from dashboard.alerts.sending.mail import PLAIN, STARTTLS, TLS
from dashboard.language.choice import PLAIN as IN_ENGLISH
from dashboard.language.choice import languages
from dashboard.language.sentences import gettext, joined
from dashboard.models.alerts import AlertChannel, AlertMute, AlertRule, ChannelKind
from dashboard.outward.targets import TargetRefused, split_url
from gantrymq.errors import GantryError

WAIT_S_MAX = 86_400.0
CHANNELS_MAX = 50
SILENCES_MAX = 100
SILENCE_MAX = timedelta(days=30)
SECRET_CHARS_MIN = 16
SECRET_BYTES = 24
RECIPIENTS_MAX = 20
SECURITY = (STARTTLS, TLS, PLAIN)
_API_KEY = re.compile(r"[A-Za-z0-9-]{1,100}")

Problems = dict[str, list[str]]


class NotTaken(GantryError):
    """Some fields can't be taken. problems: field to sentences."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(joined((text for texts in problems.values() for text in texts), "; "))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleValues:
    """What a person says of a rule; clear None: the threshold. channels: primary keys; none is all."""

    name: str
    kind: str
    pattern: str
    threshold: float
    clear: float | None
    for_s: float
    clear_s: float
    level: int
    is_on: bool
    channels: Sequence[int]


def save_rule(values: RuleValues, row: AlertRule | None = None) -> AlertRule:
    """Make a rule, or change one. Raises NotTaken."""
    problems = rule_problems(values)
    if row is None and AlertRule.objects.filter(deleted_at=None).count() >= RULES_MAX:
        problems["name"] = [gettext("There are %(count)s rules, which is the maximum.") % {"count": RULES_MAX}]
    known = set(AlertChannel.objects.filter(pk__in=values.channels).values_list("pk", flat=True))
    if known != set(values.channels):
        problems["channels"] = [gettext("One of these channels does not exist.")]
    if problems:
        raise NotTaken(problems)
    row = row or AlertRule()
    row.name, row.kind, row.pattern = values.name.strip(), values.kind, values.pattern.strip()
    row.threshold, row.clear = values.threshold, values.threshold if values.clear is None else values.clear
    row.for_s, row.clear_s, row.level, row.is_on = values.for_s, values.clear_s, values.level, values.is_on
    row.save()
    row.channels.set(values.channels)
    changes.note()
    return row


def rule_problems(values: RuleValues) -> Problems:
    """What is wrong, by field."""
    found: Problems = {}
    kind = KINDS.get(values.kind)
    if not values.name.strip() or len(values.name) > AlertRule.NAME_MAX:
        found["name"] = [gettext("A name of 1 to %(count)s characters.") % {"count": AlertRule.NAME_MAX}]
    if len(values.pattern) > AlertRule.PATTERN_MAX:
        found["pattern"] = [gettext("At most %(count)s characters.") % {"count": AlertRule.PATTERN_MAX}]
    if values.threshold < 0:
        found["threshold"] = [gettext("A number from 0.")]
    if kind is None:
        found["kind"] = [gettext("One of %(values)s.") % {"values": joined(KINDS)}]
    elif values.clear is not None:
        if values.clear < 0:
            found["clear"] = [gettext("A number from 0.")]
        elif kind.is_below and values.clear < values.threshold:
            found["clear"] = [gettext("This kind opens below the threshold, so it resolves at a number above it.")]
        elif not kind.is_below and values.clear > values.threshold:
            found["clear"] = [gettext("This kind opens above the threshold, so it resolves at a number below it.")]
    for field in ("for_s", "clear_s"):
        if not 0 <= getattr(values, field) <= WAIT_S_MAX:
            found[field] = [gettext("From 0 s to 24 h.")]
    return found


def switch_rule(row: AlertRule, is_on: bool) -> None:
    AlertRule.objects.filter(pk=row.pk).update(is_on=is_on)
    changes.note()


def delete_rule(row: AlertRule) -> None:
    """It can be had back for a day."""
    AlertRule.objects.filter(pk=row.pk).update(deleted_at=timezone.now())
    changes.note()


def restore_rule(row: AlertRule) -> None:
    AlertRule.objects.filter(pk=row.pk).update(deleted_at=None)
    changes.note()


# ---- channels


def save_channel(
    name: str, kind: str, given: Mapping[str, Any], is_on: bool, row: AlertChannel | None = None
) -> AlertChannel:
    """Make a channel, or change one: a secret that is left empty stays where it was sent before. Raises NotTaken."""
    before = row.known_settings() if row is not None else {}
    values = {key: value.strip() if isinstance(value, str) else value for key, value in given.items()}
    values |= {name: value for name, value in KINDS_OF_CHANNELS[kind].defaults.items() if not values.get(name)}
    missing = _keep_secrets(kind, values, before)
    if kind == ChannelKind.WEBHOOK and not values.get("secret"):
        values["secret"] = secrets.token_urlsafe(SECRET_BYTES)
    values["language"] = values.get("language") or before.get("language") or IN_ENGLISH
    problems = channel_problems(kind, values) | missing
    if values["language"] not in languages():
        problems["language"] = [gettext("One of %(values)s.") % {"values": joined(languages())}]
    if not name.strip() or len(name) > AlertChannel.NAME_MAX:
        problems["name"] = [gettext("A name of 1 to %(count)s characters.") % {"count": AlertChannel.NAME_MAX}]
    elif AlertChannel.objects.filter(name=name.strip()).exclude(pk=row.pk if row else 0).exists():
        problems["name"] = [gettext("A channel of this name exists.")]
    if row is None and AlertChannel.objects.count() >= CHANNELS_MAX:
        problems["name"] = [gettext("There are %(count)s channels, which is the maximum.") % {"count": CHANNELS_MAX}]
    if problems:
        raise NotTaken(problems)
    row = row or AlertChannel(kind=kind)
    row.name, row.is_on = name.strip(), is_on
    row.settings = json.dumps({key: values.get(key) for key in (*KINDS_OF_CHANNELS[kind].settings, "language")})
    row.save()
    return row


def _keep_secrets(kind: str, values: dict[str, Any], before: Mapping[str, Any]) -> Problems:
    """Put what was left empty back in, unless it would go to another place now. Returns what has to be typed anew."""
    declared = KINDS_OF_CHANNELS[kind]
    found: Problems = {}
    for name in declared.secrets:
        if values.get(name) or not before.get(name):
            continue
        if name in declared.place or _place(declared, values) == _place(declared, before):
            values[name] = before[name]
        elif kind != ChannelKind.MAIL or values.get("username"):
            found[name] = [
                gettext("The server has changed. Enter this again: the stored value is not sent to another server.")
            ]
    return found


def _place(declared: Kind, values: Mapping[str, Any]) -> tuple[object, ...]:
    """Who gets what is sent there."""
    if declared.build is None:
        return tuple(values.get(name) for name in declared.place)
    try:
        return split_url(declared.address(values))
    except TargetRefused:
        return ()


def channel_problems(kind: str, values: Mapping[str, Any]) -> Problems:
    """What is wrong, by field."""
    if kind == ChannelKind.MAIL:
        return _mail_problems(values)
    declared, found = KINDS_OF_CHANNELS[kind], Problems()
    try:
        split_url(declared.address(values))
    except TargetRefused as exc:
        found[declared.place[0]] = [str(exc)]
    if kind == ChannelKind.PAGERDUTY and len(str(values.get("routing_key") or "")) != ROUTING_KEY_CHARS:
        found["routing_key"] = [gettext("A key of %(count)s characters.") % {"count": ROUTING_KEY_CHARS}]
    if kind == ChannelKind.OPSGENIE and not _API_KEY.fullmatch(str(values.get("api_key") or "")):
        found["api_key"] = [gettext("The key of an integration: letters, digits and hyphens.")]
    if kind == ChannelKind.WEBHOOK and len(str(values.get("secret") or "")) < SECRET_CHARS_MIN:
        found["secret"] = [
            gettext("At least %(count)s characters; leave it empty to get one.") % {"count": SECRET_CHARS_MIN}
        ]
    return found


def shown_settings(channel: AlertChannel) -> dict[str, Any]:
    """What of its settings a page may show: where it leads, without any secret."""
    known, declared = channel.known_settings(), KINDS_OF_CHANNELS[channel.kind]
    shown = declared.shown(known) | {"language": channel.language}
    if declared.build is None:
        return shown
    signed = {"signed": bool(known.get("secret"))} if "url" in declared.settings else {}
    return {"host": urlsplit(declared.address(known)).netloc} | signed | shown


def shown_facts(channel: AlertChannel) -> dict[str, Any]:
    """What the audit log says of it."""
    return {"name": channel.name, "on": channel.is_on} | shown_settings(channel)


def _mail_problems(values: Mapping[str, Any]) -> Problems:
    found: Problems = {}
    host = str(values.get("host") or "")
    if not host or any(char.isspace() or char in "/@" for char in host):
        found["host"] = [gettext("The name or address of a mail server.")]
    if not isinstance(values.get("port"), int) or not 1 <= values["port"] <= 65535:
        found["port"] = [gettext("A port from 1 to 65535.")]
    if values.get("security") not in SECURITY:
        found["security"] = [gettext("One of %(values)s.") % {"values": joined(SECURITY)}]
    for field, addresses in (("sender", [values.get("sender")]), ("recipients", _recipients(values))):
        try:
            for address in addresses:
                validate_email(address)
        except ValidationError:
            found[field] = [gettext("This is not a mail address.")]
    if not 1 <= len(_recipients(values)) <= RECIPIENTS_MAX:
        found["recipients"] = [
            gettext("From 1 to %(count)s addresses, separated by commas.") % {"count": RECIPIENTS_MAX}
        ]
    if values.get("password") and values.get("security") == PLAIN:
        found["security"] = [gettext("Passwords are sent over TLS only.")]
    return found


def _recipients(values: Mapping[str, Any]) -> list[str]:
    return [one.strip() for one in str(values.get("recipients") or "").split(",") if one.strip()]


# ---- mutes


def mute(rule: AlertRule | None, pattern: str, reason: str, until: datetime, who: str) -> AlertMute:
    """No notice until then. Raises NotTaken."""
    now = timezone.now()
    problems: Problems = {}
    if not now < until <= now + SILENCE_MAX:
        problems["until"] = [
            gettext("A time in the future, within %(days)s days: a mute always ends.") % {"days": SILENCE_MAX.days}
        ]
    if not reason.strip() or len(reason) > 200:
        problems["reason"] = [gettext("Give a reason in up to 200 characters: others will ask.")]
    if len(pattern) > AlertRule.PATTERN_MAX:
        problems["pattern"] = [gettext("At most %(count)s characters.") % {"count": AlertRule.PATTERN_MAX}]
    if AlertMute.objects.filter(until__gt=now).count() >= SILENCES_MAX:
        problems["reason"] = [gettext("There are %(count)s mutes already.") % {"count": SILENCES_MAX}]
    if problems:
        raise NotTaken(problems)
    return AlertMute.objects.create(
        rule=rule, pattern=pattern.strip(), reason=reason.strip(), until=until, begun_at=now, who=who[:160]
    )


def end_mute(row: AlertMute) -> None:
    """What still rings is told now."""
    AlertMute.objects.filter(pk=row.pk).update(until=timezone.now())
