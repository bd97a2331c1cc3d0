"""Checks of what a client is made with, so that a mistake shows where it is made and not at the first message.

`options` is always a dataclass.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any

from gantrymq.errors import ConfigError, WrongType

WORDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}


def check_types(options: Any) -> None:
    """WrongType unless the options that are numbers, texts, paths, or of classes of the SDK are just that."""
    for name, kinds in _kinds_of(options.__class__).items():
        value = getattr(options, name)
        if type(value) in kinds or (isinstance(value, kinds) and not isinstance(value, bool)):
            continue
        words = " or ".join(_word(kind) for kind in kinds if kind not in (types.NoneType, int))
        raise WrongType(f"{name}={value!r:.60}: {words or WORDS[int]} is wanted, not {type(value).__name__}")


def _word(kind: type) -> str:
    return "a Path" if kind.__name__ == "Path" else WORDS.get(kind, kind.__name__)


def check_at_least(options: Any, least: float, *names: str) -> None:
    """ConfigError unless each of these numbers is at least `least`. None passes."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not value >= least:
            raise ConfigError(f"{name}={value}: it must be at least {least}")


def check_above_zero(options: Any, *names: str) -> None:
    """ConfigError unless each of these numbers is more than 0."""
    for name in names:
        value = getattr(options, name)
        if not value > 0:
            raise ConfigError(f"{name}={value}: it must be more than 0")


def check_share(options: Any, name: str) -> None:
    """ConfigError unless this number is from 0 to 1."""
    value = getattr(options, name)
    if not 0 <= value <= 1:
        raise ConfigError(f"{name}={value}: it must be from 0 to 1")


def check_listener(listener: object, *methods: str) -> None:
    """WrongType unless it can be called, or has these methods."""
    if not methods and not callable(listener):
        raise WrongType(f"listener={listener!r:.60}: a function that takes a list of messages is wanted")
    lacking = [name for name in methods if not callable(getattr(listener, name, None))]
    if lacking:
        raise WrongType(f"listener={listener!r:.60}: it has no method {' and no method '.join(lacking)}")


@functools.cache
def _kinds_of(kind: Any) -> dict[str, tuple[type, ...]]:
    """By option the classes it may have; options that are functions or protocols are left out."""
    from pathlib import Path  # which importing the options has not loaded

    hints = typing.get_type_hints(kind, localns={"Path": Path})
    found = {field.name: _classes(hints[field.name]) for field in dataclasses.fields(kind)}
    return {name: classes for name, classes in found.items() if classes}


def _classes(hint: Any) -> tuple[type, ...]:
    """The classes of a hint, none when one of its parts is no class."""
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if not all(isinstance(part, type) and not typing.get_args(part) for part in parts):
        return ()
    return (*parts, int) if float in parts else tuple(parts)
