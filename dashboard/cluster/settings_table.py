"""A broker's settings as a person may see and change them: what each means, what it may be, why it may not change.

The broker decides in the end; what is checked here is checked so that the answer comes beside the field.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, replace
from pathlib import Path
from typing import Any

from appliance.settings.ignored import IGNORED
from appliance.settings.loader import parse_value, settings_by_key
from appliance.settings.roles import BrokerConfig
from dashboard.language.sentences import gettext, in_english, joined
from gantrymq.client.admin.brokers import SettingOrigins
from gantrymq.errors import ConfigError
from store.base.config import LONG_MAX, MessageStoreConfig

# where a setting comes from
DEFAULT, FILE, CHANGED, FOLLOWS, SET = "default", "file", "changed while it runs", "follows from others", "set"
SOURCES = (DEFAULT, FILE, CHANGED, FOLLOWS, SET)
MASK = "******"
VALUE_CHARS_MAX = 1000
_SECRET = re.compile(r"password|secret|accessKey", re.IGNORECASE)
_NEVER = re.compile(r"path|dir$|home|addr|filterServerNums|acl|tls|credentials", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class BrokerSetting:
    """One setting of a broker. refusal: why it can't be changed from here, None when it can."""

    key: str
    value: str
    doc: str
    default: str
    kind: str  # bool, number, text
    allowed: str  # what it may be, in words
    refusal: str | None
    source: str = ""  # SOURCES, in words
    changed_at: float | None = None  # epoch seconds, when it was changed while the broker runs

    @property
    def is_default(self) -> bool:
        return self.value == self.default

    @property
    def can_revert(self) -> bool:
        """Whether it can be set back to its default from here."""
        return self.refusal is None and not self.is_default


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One line of the diff."""

    key: str
    before: str
    after: str
    default: str


def broker_settings(values: Mapping[str, str], origins: SettingOrigins | None = None) -> list[BrokerSetting]:
    """What a broker answered to 26, by key. Secrets are masked whatever the broker did. origins: None: not told."""
    rows = (_setting(key, value) for key, value in sorted(values.items(), key=lambda item: item[0].lower()))
    return [_with_source(row, origins) for row in rows]


def _with_source(row: BrokerSetting, origins: SettingOrigins | None) -> BrokerSetting:
    if origins is None:  # Apache's: only the difference is known
        return replace(row, source=DEFAULT if row.is_default else SET)
    if row.key in origins.changed:
        return replace(row, source=CHANGED, changed_at=origins.changed[row.key] / 1000)
    if row.key in origins.in_file:
        return replace(row, source=FILE)
    return replace(row, source=DEFAULT if row.is_default else FOLLOWS)


def read_changes(
    settings: Sequence[BrokerSetting], wanted: Mapping[str, str]
) -> tuple[list[SettingChange], dict[str, str]]:
    """(what would change, what can't be: key to a sentence). Keys that stay as they are count as neither."""
    known = {setting.key: setting for setting in settings}
    changes: list[SettingChange] = []
    problems: dict[str, str] = {}
    for key, text in wanted.items():
        setting = known.get(key)
        value = text.strip()
        if setting is None:
            problems[key] = gettext("The broker has no such setting.")
        elif value == setting.value:
            continue
        elif setting.refusal is not None:
            problems[key] = setting.refusal
        elif (problem := _check(key, value)) is not None:
            problems[key] = problem
        else:
            changes.append(SettingChange(key, setting.value, value, setting.default))
    return changes, problems


def _setting(key: str, value: str) -> BrokerSetting:
    found = _known().get(key)
    doc = default = ""
    kind, allowed = "text", ""
    if found is not None:
        config_class, item = found
        doc = gettext(item.metadata["doc"])
        default = _text(item)
        kind = _kind(config_class, item.name)
        allowed = _allowed(item, kind)
    elif key in IGNORED:
        doc, default = _does_nothing(key), value
    shown = MASK if value and _SECRET.search(key) else value
    return BrokerSetting(key, shown, doc, default, kind, allowed, _refusal(key))


def _refusal(key: str) -> str | None:
    if key in _known() and _known()[key][1].metadata["live"]:
        return None
    if _SECRET.search(key):
        return gettext("a secret: never shown, never changed by a request")
    if _NEVER.search(key):
        return gettext("a path, an address or a safeguard: never changed by a request, edit the file")
    if key in _known():
        return gettext("read at the start: edit the file and restart")
    if key in IGNORED:
        return _does_nothing(key)
    return gettext("has one value only, or is not a setting of this broker")


def _check(key: str, value: str) -> str | None:
    if len(value) > VALUE_CHARS_MAX or _CONTROL.search(value):
        return gettext("At most %(count)s characters, on one line.") % {"count": VALUE_CHARS_MAX}
    config_class, item = _known()[key]
    try:
        parse_value(config_class, item, value)
    except ConfigError as exc:
        told = str(exc).removeprefix(f"{key}={value}: ")
        for mistake in (gettext("use true or false"), gettext("use a whole number"), gettext("use a number, like 0.9")):
            if told == in_english(mistake):
                return mistake
        if allowed := _allowed(item, _kind(config_class, item.name)):
            return gettext("Allowed: %(values)s") % {"values": allowed}
        return told
    return None


def _does_nothing(key: str) -> str:
    return gettext("has no effect here: %(why)s") % {"why": gettext(IGNORED[key])}


def _allowed(item: Field[Any], kind: str) -> str:
    """What a value may be, in words."""
    if kind == "bool":
        return gettext("true or false")
    if kind != "number":
        return ""
    if choices := item.metadata["choices"]:
        return gettext("one of %(values)s") % {"values": joined(str(one) for one in choices)}
    lowest, highest = item.metadata["within"]
    if highest == LONG_MAX:
        return gettext("a whole number from %(lowest)s up") % {"lowest": lowest}
    return gettext("a whole number from %(lowest)s to %(highest)s") % {"lowest": lowest, "highest": highest}


@functools.cache
def _known() -> dict[str, tuple[type, Field[Any]]]:
    return {
        key: (config_class, item)
        for config_class in (MessageStoreConfig, BrokerConfig)
        for key, item in settings_by_key(config_class).items()
    }


@functools.cache
def _kind(config_class: type, name: str) -> str:
    kind = typing.get_type_hints(config_class)[name]
    return {bool: "bool", int: "number", float: "number"}.get(kind, "text")


def _text(item: Field[Any]) -> str:
    value = item.default
    if value is None or value is MISSING:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if isinstance(value, Path) else str(value)  # a default path tells about this machine
