"""Where the settings of the appliance come from: arguments, environment, gantry.toml; what each says, with its type."""

from __future__ import annotations

import dataclasses
import difflib
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from appliance.settings.variables import CONFIG_VARIABLE, ENVIRONMENT_PREFIX, is_setting_variable
from gantrymq.errors import ConfigError

DEFAULT_FILE = "gantry.toml"
Fields = Mapping[str, dataclasses.Field[Any]]  # by name


def merged(
    fields: Fields,
    arguments: Mapping[str, Any],
    environment: Mapping[str, str],
    config_file: Path | None,
    working_folder: Path,
) -> dict[str, Any]:
    """The values that are given; an argument of None counts as not given. ConfigError, also for an unknown name."""
    unknown = [name for name in environment if is_setting_variable(name) and _field_of(name) not in fields]
    if unknown:
        raise ConfigError(_unknown_name(unknown[0], map(variable_of, fields)))
    path = config_file or _configured_file(environment, working_folder)
    values = _read_file(fields, path) if path else {}
    values |= from_variables(fields, environment)
    return values | {name: value for name, value in arguments.items() if value is not None}


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return ENVIRONMENT_PREFIX + name.upper()


def _configured_file(environment: Mapping[str, str], working_folder: Path) -> Path | None:
    if named := environment.get(CONFIG_VARIABLE):
        return Path(named)
    usual = working_folder / DEFAULT_FILE
    if not usual.is_file():
        return None
    _refuse_untrusted(usual)
    return usual


def _refuse_untrusted(path: Path) -> None:
    """Refuse a gantry.toml that another account may have written. It is read without being named, its `java_home` is a
    program to run, and the working folder may be /tmp. Raises ConfigError."""
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        why = f"belongs to another account (user id {found.st_uid})"
    elif found.st_mode & stat.S_IWOTH:
        why = "can be written by every account of this machine"
    else:
        return
    raise ConfigError(f"{path} {why}, so it is not read by default: use --config {path} if you trust it")


def _read_file(fields: Fields, path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as exc:
        raise ConfigError(f"{path}: {exc.strerror}; give an existing file to --config") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    values = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in fields:
            raise ConfigError(f"{path}: {_unknown_name(key, fields)}")
        values[name] = _typed(fields[name], value, f"{path}: {key}")
    if "data" in values and not values["data"].is_absolute():
        values["data"] = path.absolute().parent / values["data"]
    return values


def from_variables(fields: Fields, environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are given as variables, with their types. Variables that are none are left out. ConfigError."""
    given = ((_field_of(name), name, value) for name, value in environment.items() if is_setting_variable(name))
    return {name: _typed(fields[name], value, variable) for name, variable, value in given if name in fields}


def _field_of(variable: str) -> str:
    return variable.removeprefix(ENVIRONMENT_PREFIX).lower()


def _typed(item: dataclasses.Field[Any], value: Any, where: str) -> Any:
    """`value` as the type of the field's default; text is converted, other values must have that type."""
    kind: Any = type(item.default)
    try:
        if issubclass(kind, Path):
            return Path(value)
        if kind is bool:
            return value if isinstance(value, bool) else _BOOLEANS[str(value).strip().lower()]
        if kind is float and isinstance(value, int | float | str):
            return float(value)
        if kind is int and (isinstance(value, str) or type(value) is int):
            return int(value)
        if kind is str and isinstance(value, str):
            return value
    except (ValueError, KeyError, TypeError):
        pass  # reported below, with the expected type
    raise ConfigError(f"{where}={value!r}: use {_KIND_NAMES[kind]}")


_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_KIND_NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(Path()): "a path"}


def _unknown_name(name: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"unknown setting {name}" + (f"; did you mean {nearest[0]}?" if nearest else "")


def as_text(value: Any) -> str:
    """The value as a variable has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
