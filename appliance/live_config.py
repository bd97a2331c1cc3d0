"""Changing settings of a running process: requests 25 (broker) and 318 (name server).

Only keys on the caller's allow-list change, typed and checked like at the start; a request changes everything it names
or nothing. Paths, folders, addresses and everything that ever led to a command line are refused whatever the list says
(CVE-2023-33246, CVE-2023-37582). Keys that mean nothing here are left alone, as RocketMQ does; the caller may say so.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from appliance.config import parse_value, settings_by_key, write_properties
from appliance.errors import BrokerError
from gantrymq.errors import ConfigError
from gantrymq.remoting.bodies import DataVersion
from gantrymq.remoting.codes import ResponseCode

_NEVER_FROM_AFAR = re.compile(r"path|dir$|home|addr|filterServerNums|acl|tls", re.IGNORECASE)


class ConfigChange(NamedTuple):
    """One setting that got another value; texts as in a properties file."""

    key: str
    before: str
    after: str


class LiveConfig:
    """A process's configuration objects as requests see them. Changes last until the process ends."""

    def __init__(self, configs: Sequence[Any], *, changeable: Set[str]) -> None:
        self.version = DataVersion(int(time.time() * 1000), 0)
        self._configs = configs
        self._changeable = changeable

    def update(self, text: bytes) -> tuple[list[ConfigChange], list[str]]:
        """See update_settings."""
        changes, ignored = update_settings(self._configs, text, changeable=self._changeable)
        if changes:
            self.version.bump(int(time.time() * 1000))
        return changes, ignored

    def text(self) -> bytes:
        """Everything in force, one `key=value` a line."""
        return write_properties(*self._configs).encode()


def update_settings(
    configs: Sequence[Any], text: bytes, *, changeable: Set[str]
) -> tuple[list[ConfigChange], list[str]]:
    """Apply `key=value` lines to the configuration objects; returns (changes, keys that mean nothing here).

    Raises BrokerError: a key that may not change from afar, a value that is none of its kind. Nothing has changed then.
    """
    wanted = _read_lines(text)
    current = dict(line.split("=", 1) for line in write_properties(*configs).splitlines())
    _refuse_forbidden(wanted, current, changeable)
    changed: list[tuple[Any, str, Any]] = []
    changes: list[ConfigChange] = []
    for index, config in enumerate(configs):
        settings = settings_by_key(type(config))
        mine = {key: value for key, value in wanted.items() if key in settings and value != current[key]}
        try:
            values = {settings[key].name: parse_value(type(config), settings[key], mine[key]) for key in mine}
            dataclasses.replace(configs[index], **values)  # runs the checks of a new configuration
        except ConfigError as exc:
            raise BrokerError(ResponseCode.SYSTEM_ERROR, str(exc)) from exc
        changed += [(config, name, value) for name, value in values.items()]
        changes += [ConfigChange(key, current[key], value) for key, value in mine.items()]
    for config, name, value in changed:
        object.__setattr__(config, name, value)  # frozen for everyone else: parts hold this very object
    return changes, sorted(key for key in wanted if key not in current)


def _read_lines(text: bytes) -> dict[str, str]:
    """Java properties as the tools send them. A line without "=" is a key without a value, as Java reads it."""
    try:
        lines = [line.strip() for line in text.decode().splitlines()]
    except UnicodeDecodeError as exc:
        raise BrokerError(ResponseCode.SYSTEM_ERROR, f"string2Properties error: {exc}") from exc
    pairs = (line.partition("=") for line in lines if line and line[0] not in "#!")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _refuse_forbidden(wanted: dict[str, str], current: dict[str, str], changeable: Set[str]) -> None:
    for key, value in wanted.items():
        if current.get(key) == value:
            continue  # tools send whole configurations back
        if _NEVER_FROM_AFAR.search(key):
            raise BrokerError(ResponseCode.NO_PERMISSION, f"{key} can not be changed by a request: edit the file")
        if key in current and key not in changeable:
            raise BrokerError(
                ResponseCode.NO_PERMISSION, f"{key} can not be changed while running: edit the file and restart"
            )
