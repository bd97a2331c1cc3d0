"""Changing settings of a running process: requests 25 (broker) and 318 (name server).

Only keys on the caller's allow-list can change, with the same types and checks as at the start; a request changes all
of its keys or none. Paths, folders, addresses and settings that ever reached a command line are always refused
(CVE-2023-33246, CVE-2023-37582). Keys without a meaning here are ignored, as RocketMQ does; the remark names them.

A change is written to the properties file of the process before it takes effect: only the changed lines (RocketMQ
writes all of its settings). Without such a file, or when it can't be written, a change lasts until the process ends,
and the remark says so.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from appliance.errors import BrokerError
from appliance.settings.ignored import FIXED, OTHER_NAMES, explain_ignored, is_fixed_at
from appliance.settings.loader import parse_value, settings_by_key, write_properties
from appliance.settings.properties_file import PropertiesFile
from gantrymq.errors import ConfigError
from gantrymq.remoting.admin_bodies import DataVersion
from gantrymq.remoting.codes import ResponseCode

logger = logging.getLogger(__name__)

_NEVER_BY_REQUEST = re.compile(r"path|dir$|home|addr|filterServerNums|acl|tls", re.IGNORECASE)
_SECRET = re.compile(r"password|secretKey|accessKey", re.IGNORECASE)
MASK = "******"
NO_KEYS = "none"  # the binary header drops empty fields
NOTHING: Mapping[str, str] = MappingProxyType({})
REMARK_CHARS_MAX = 2048  # a remark contains keys from the request
REQUEST_BYTES_MAX = 1 << 20  # a whole configuration has about 10 KiB


class ConfigChange(NamedTuple):
    """One setting that got another value; texts as in a properties file."""

    key: str
    before: str
    after: str


class ConfigUpdate(NamedTuple):
    """The result of a request. remark: what did not happen as requested, None when everything did."""

    changes: list[ConfigChange]
    remark: str | None


class LiveConfig:
    """A process's configuration objects as requests see them.

    file: the properties file of the process, None without one. ignored: its keys without a meaning here. told: further
    values to show, which are no settings; a tool may send them back unchanged.
    """

    def __init__(
        self,
        configs: Sequence[Any],
        *,
        changeable: Set[str],
        file: PropertiesFile | None = None,
        ignored: Sequence[str] = (),
        told: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.version = DataVersion(int(time.time() * 1000), 0)
        self.ignored = tuple(ignored)
        self.refusals = Refusals()
        self._configs = configs
        self._changeable = changeable
        self._file = file
        self._told = told
        self._keys_at_start = self._keys_in_file()
        self._changed: dict[str, int] = {}  # by request, and when: ms since the epoch
        self._lock = asyncio.Lock()  # checking, writing and applying are one step

    async def update(self, text: bytes) -> ConfigUpdate:
        """Apply the `key=value` lines in memory and in the file, or refuse all of them. Raises BrokerError."""
        async with self._lock:
            plan = plan_update(self._configs, text, changeable=self._changeable, told=self._told())
            remarks = [f"no setting here: {explain_ignored(plan.idle)}"] if plan.idle else []
            if plan.changes and (why := await self._keep({change.key: change.after for change in plan.changes})):
                remarks.append(f"holds until the process ends: {why}")
            plan.apply()
            self._changed |= dict.fromkeys((change.key for change in plan.changes), int(time.time() * 1000))
            if text.strip():  # RocketMQ counts each update, whether it changed something or not
                self.version.bump(int(time.time() * 1000))
            return ConfigUpdate(plan.changes, "; ".join(remarks)[:REMARK_CHARS_MAX] or None)

    async def _keep(self, values: dict[str, str]) -> str | None:
        """Write the values to the file. Returns the reason when that failed, None when they are written.

        The request still succeeds: on a full disk the operator must be able to shorten the retention of files.
        """
        if self._file is None:
            return "it was started without a file (-c FILE)"
        try:
            await asyncio.to_thread(self._file.change, values)
        except (OSError, UnicodeDecodeError) as exc:
            path = self._file.path
            logger.error(
                "settings not written", extra={"event": "settings_not_written", "path": str(path), "why": str(exc)}
            )
            return f"{path.name} can not be written ({exc.strerror if isinstance(exc, OSError) else 'not in UTF-8'})"
        return None

    def origins(self) -> dict[str, str]:
        """Header fields that say where settings come from: keys of the file at the start, and key:ms of changes."""
        return {
            "keysInFile": ",".join(sorted(self._keys_at_start)) or NO_KEYS,
            "keysChanged": ",".join(f"{key}:{at}" for key, at in sorted(self._changed.items())) or NO_KEYS,
        }

    def _keys_in_file(self) -> frozenset[str]:
        if self._file is None:
            return frozenset()
        try:
            found = self._file.keys()
        except (OSError, UnicodeDecodeError) as exc:  # the process has read it, so it serves on
            facts = {"event": "settings_not_read", "path": str(self._file.path), "why": str(exc)}
            logger.warning("the settings file cannot be read again", extra=facts)
            return frozenset()
        known = {key for config in self._configs for key in settings_by_key(type(config))}
        return frozenset({OTHER_NAMES.get(key, key) for key in found} & known)

    def text(self) -> bytes:
        """All current settings, one `key=value` a line, secrets masked."""
        return shown_text(self._configs, self._told()).encode()


@dataclasses.dataclass
class Refusals:
    """Refused requests to change settings: their number, the last peer, and when (monotonic seconds)."""

    count: int = 0
    last_peer: str = ""
    last_at: float | None = None

    def note(self, peer: str) -> None:
        self.count += 1
        self.last_peer, self.last_at = peer, time.monotonic()


class UpdatePlan:
    """A checked request; `apply` makes it take effect. idle: keys without a meaning here."""

    def __init__(self, values: list[tuple[Any, str, Any]], changes: list[ConfigChange], idle: list[str]) -> None:
        self._values = values
        self.changes = changes
        self.idle = idle

    def apply(self) -> None:
        for config, name, value in self._values:
            object.__setattr__(config, name, value)  # frozen for all other code; parts of the broker hold this object


def plan_update(
    configs: Sequence[Any], text: bytes, *, changeable: Set[str], told: Mapping[str, str] = NOTHING
) -> UpdatePlan:
    """Check `key=value` lines against the configuration objects.

    Raises BrokerError for a key that requests may not change, and for a value of the wrong type.
    """
    wanted = _read_lines(text)
    settings_here = shown(configs)
    current = {**settings_here, **told}
    known = {key for config in configs for key in settings_by_key(type(config))}
    _refuse_forbidden(wanted, current, known, changeable)
    values: list[tuple[Any, str, Any]] = []
    changes: list[ConfigChange] = []
    for config in configs:
        settings = settings_by_key(type(config))
        mine = {key: value for key, value in wanted.items() if key in settings and value != current[key]}
        try:
            parsed = {settings[key].name: parse_value(type(config), settings[key], mine[key]) for key in mine}
            dataclasses.replace(config, **parsed)  # __post_init__ checks the settings together
        except ConfigError as exc:
            raise BrokerError(ResponseCode.INVALID_PARAMETER, str(exc)) from exc
        values += [(config, name, value) for name, value in parsed.items()]
        changes += [ConfigChange(key, current[key], value) for key, value in mine.items()]
    idle = sorted(key for key, value in wanted.items() if key not in settings_here and told.get(key) != value)
    return UpdatePlan(values, changes, idle)


def shown(configs: Sequence[Any]) -> dict[str, str]:
    """The current settings, with secrets masked.

    Fixed settings are included, because tools read some of them (mqadmin exportConfigs), and so is a number of threads
    which tools take for the number of processors (mqadmin exportMetrics).
    """
    values = dict(line.split("=", 1) for line in write_properties(*configs).splitlines())
    if "brokerName" in values:
        values["clientCallbackExecutorThreads"] = str(os.cpu_count() or 1)
    fixed = {key: fixed.value for key, fixed in FIXED.items() if "brokerName" in values and "." not in key}
    return fixed | {key: MASK if value and _SECRET.search(key) else value for key, value in values.items()}


def shown_text(configs: Sequence[Any], told: Mapping[str, str] = NOTHING) -> str:
    """The same as a properties file, sorted by key."""
    return "".join(f"{key}={value}\n" for key, value in sorted({**shown(configs), **told}.items()))


def _read_lines(text: bytes) -> dict[str, str]:
    """Java properties as the tools send them. A line without "=" is a key without a value, as Java reads it."""
    if len(text) > REQUEST_BYTES_MAX:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"more than {REQUEST_BYTES_MAX} bytes of settings")
    try:
        lines = [line.strip() for line in text.decode().splitlines()]
    except UnicodeDecodeError as exc:
        raise BrokerError(ResponseCode.INVALID_PARAMETER, f"string2Properties error: {exc}") from exc
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    wanted = {key.strip(): value.strip() for key, _, value in pairs}
    renamed = {OTHER_NAMES[key]: value for key, value in wanted.items() if key in OTHER_NAMES}
    return renamed | {key: value for key, value in wanted.items() if key not in OTHER_NAMES}


def _refuse_forbidden(wanted: dict[str, str], current: dict[str, str], known: Set[str], changeable: Set[str]) -> None:
    for key, value in wanted.items():
        if current.get(key) == value:
            continue  # tools send whole configurations back, so unchanged keys are no request
        if _NEVER_BY_REQUEST.search(key):
            raise BrokerError(ResponseCode.NO_PERMISSION, f"{key} can not be changed by a request: edit the file")
        if key not in known and key in FIXED and not is_fixed_at(key, value):
            raise BrokerError(ResponseCode.NO_PERMISSION, f"{key} can only be {FIXED[key].value}: {FIXED[key].why}")
        if key in known and key not in changeable:
            raise BrokerError(
                ResponseCode.NO_PERMISSION, f"{key} can not be changed while running: edit the file and restart"
            )
