"""Properties files to settings and back.

`gantry broker -c FILE` and `gantry namesrv -c FILE` read RocketMQ's properties files as they are. RocketMQ's keys that
have no effect here are accepted and reported (settings/ignored.py has the reasons); unknown keys are refused, so that a
typing error is noticed.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import types
import typing
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from appliance.settings.ignored import FIXED, IGNORED, OTHER_NAMES, is_fixed_at
from appliance.settings.properties_file import lines_of
from appliance.settings.roles import BrokerConfig, NamesrvConfig, ProxyConfig
from appliance.settings.tls import NOT_FROM_TLS_FILE
from gantrymq.errors import ConfigError
from store.base.config import LONG_MAX, MessageStoreConfig

SHOWN_CHARS = 80  # of a line that can't be read
TYPING_ERROR_RATIO = 0.85  # of difflib: one or two letters of a key


def broker_settings(brokers: Path) -> list[tuple[Path, dict[str, str]]]:
    """Folder and settings file of each. Raises ConfigError for another account's."""
    try:
        paths = sorted(brokers.glob("*/broker.properties"))
        return [(path.parent, read_properties(path.read_text(encoding="utf-8"))) for path in paths]
    except OSError as exc:
        raise ConfigError(f"{brokers} can't be read ({exc.strerror}): run the command as its owner") from exc


def read_properties(text: str) -> dict[str, str]:
    """Java's properties format as RocketMQ writes it: key=value lines, # and ! comments, no escapes.

    Raises ConfigError with the line's number when a line has no key.
    """
    properties: dict[str, str] = {}
    for number, raw in enumerate(lines_of(text), start=1):
        line = raw.strip()
        if not line or line[0] in "#!":
            continue
        key, separator, value = line.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"line {number}: expected key=value, found {line!r:.{SHOWN_CHARS}}")
        properties[key.strip()] = value.strip()
    return properties


def load_namesrv_config(
    path: Path | None, overrides: Mapping[str, str] | None = None
) -> tuple[NamesrvConfig, list[str]]:
    """(settings, ignored keys) of a namesrv.conf; the defaults without a file."""
    properties = _with_tls_file(_properties_of(path) | dict(overrides or {}))
    (config,), ignored = _build((NamesrvConfig,), properties, path)
    return config, ignored


def load_proxy_config(path: Path | None, overrides: Mapping[str, str] | None = None) -> tuple[ProxyConfig, list[str]]:
    """(settings, ignored keys) of a proxy's properties file; the defaults without a file."""
    properties = _with_tls_file(_properties_of(path) | dict(overrides or {}))
    (config,), ignored = _build((ProxyConfig,), properties, path)
    return config, ignored


def load_broker_config(
    path: Path | None, overrides: Mapping[str, str] | None = None
) -> tuple[BrokerConfig, MessageStoreConfig, list[str]]:
    """(broker settings, store settings, ignored keys) of a broker.conf; the defaults without a file."""
    properties = _with_tls_file(_properties_of(path) | dict(overrides or {}))
    (config, store_config), ignored = _build((BrokerConfig, MessageStoreConfig), properties, path)
    return config, store_config, ignored


def settings_by_key(config_class: type) -> dict[str, dataclasses.Field[Any]]:
    """The fields by RocketMQ's key."""
    return {item.metadata["rocketmq"]: item for item in dataclasses.fields(config_class)}


def live_keys(*config_classes: type) -> frozenset[str]:
    """The keys that a request may change while the process runs."""
    by_keys = map(settings_by_key, config_classes)
    return frozenset(key for by_key in by_keys for key, item in by_key.items() if item.metadata["live"])


def write_properties(*configs: Any) -> str:
    """The effective settings as key=value lines, sorted by key."""
    values: dict[str, str] = {}
    for config in configs:
        for key, item in settings_by_key(type(config)).items():
            value = getattr(config, item.name)
            values[key] = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return "".join(f"{key}={values[key]}\n" for key in sorted(values))


def _properties_of(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        return read_properties(path.read_text())
    except OSError as exc:
        raise ConfigError(f"can't read {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{path} is damaged: byte {exc.start} is none of UTF-8") from exc
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def _with_tls_file(properties: dict[str, str]) -> dict[str, str]:
    """The properties with those of the file tls.config.file, which take precedence (RocketMQ: TlsHelper)."""
    path = properties.get("tls.config.file", "")
    if not path:
        return properties
    found = _properties_of(Path(path).expanduser())
    for key in found:
        if not key.startswith("tls."):
            raise ConfigError(f"{path}: {key} is not a TLS setting; this file takes keys that start with tls. only")
    return properties | {key: value for key, value in found.items() if key not in NOT_FROM_TLS_FILE}


def _build(classes: Iterable[type], properties: Mapping[str, str], path: Path | None) -> tuple[list[Any], list[str]]:
    where = f"{path}: " if path else ""
    fields = {config_class: settings_by_key(config_class) for config_class in classes}
    known = {key for by_key in fields.values() for key in by_key}
    properties = _under_their_own_names(properties, known)
    ignored, unknown, refused = [], [], []
    for key, value in properties.items():
        if key in known or (key in FIXED and is_fixed_at(key, value)):
            continue
        if key in FIXED:
            refused.append(f"{key}={value}: {FIXED[key].why}")
        elif key in IGNORED:
            ignored.append(key)
        else:
            unknown.append(key + _hint(key, known))
    if unknown:
        refused.insert(0, f"unknown setting{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}")
    if refused:
        raise ConfigError(where + "; ".join(refused))
    configs = []
    for config_class, by_key in fields.items():
        values = {}
        for key, item in by_key.items():
            if key in properties:
                values[item.name] = parse_value(config_class, item, properties[key], where)
        configs.append(config_class(**values))
    return configs, sorted(ignored)


def _hint(key: str, known: Set[str]) -> str:
    """What an unknown key may have been meant for, in brackets. Keys that are only somewhat alike mean other things."""
    for config_class in (NamesrvConfig, BrokerConfig, MessageStoreConfig):
        if key in settings_by_key(config_class):
            return " (a name server's)" if config_class is NamesrvConfig else " (a broker's)"
    near = difflib.get_close_matches(key, [*known, *IGNORED, *FIXED, *OTHER_NAMES], n=1, cutoff=TYPING_ERROR_RATIO)
    return f" (did you mean {near[0]}?)" if near else ""


def _under_their_own_names(properties: Mapping[str, str], known: Set[str]) -> dict[str, str]:
    """Replace other names of settings (system properties) by the settings' own names, which take precedence."""
    renamed = {
        OTHER_NAMES[key]: value
        for key, value in properties.items()
        if key not in known and OTHER_NAMES.get(key, "") in known
    }
    return renamed | {
        key: value for key, value in properties.items() if key in known or OTHER_NAMES.get(key, "") not in known
    }


def parse_value(config_class: type, item: dataclasses.Field[Any], text: str, where: str = "") -> Any:
    """Convert a setting's text to its type. Raises ConfigError with key, text and the expected form."""
    kind = _types_of(config_class)[item.name]
    key = item.metadata["rocketmq"]
    if isinstance(kind, types.UnionType):  # Path | None: empty text is None
        if not text:
            return None
        kind = next(member for member in typing.get_args(kind) if member is not types.NoneType)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{where}{key}={text}: use true or false")
        return text.lower() == "true"
    if kind is int:
        try:
            number = int(text)
        except ValueError:
            raise ConfigError(f"{where}{key}={text}: use a whole number") from None
        _check_number(item, number, where)
        return number
    if kind is float:
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"{where}{key}={text}: use a number, like 0.9") from None
    return Path(text).expanduser() if kind is Path else text


def _check_number(item: dataclasses.Field[Any], value: int, where: str) -> None:
    """Raise ConfigError with the allowed values when the setting can't have this one."""
    key, choices, (lowest, highest) = (item.metadata[name] for name in ("rocketmq", "choices", "within"))
    if choices and value not in choices:
        raise ConfigError(f"{where}{key}={value}: use one of {', '.join(map(str, choices))}")
    if not lowest <= value <= highest:
        most = "up" if highest == LONG_MAX else f"to {highest}"
        raise ConfigError(f"{where}{key}={value}: use a number from {lowest} {most}")


@functools.cache
def _types_of(config_class: type) -> dict[str, Any]:
    return typing.get_type_hints(config_class)
