"""What a setting of the appliance may be: checks that stand beside its field.

A check takes the setting's name and value and returns the value to keep. ConfigError says what would be right.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gantrymq.errors import ConfigError

Check = Callable[[str, Any], Any]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def any_value(name: str, value: Any) -> Any:
    """No check: every value of the right type will do."""
    return value


def between(lowest: float, highest: float, *, or_zero: bool = False) -> Check:
    """A number in a range; 0 as well, where that switches something off."""

    def check(name: str, value: float) -> float:
        if not (or_zero and value == 0) and not lowest <= value <= highest:
            raise ConfigError(f"{name}={value}: use a number from {lowest} to {highest}")
        return value

    return check


def numbers(*allowed: int) -> Check:
    """One of a few numbers."""

    def check(name: str, value: int) -> int:
        if value not in allowed:
            raise ConfigError(f"{name}={value}: use {' or '.join(map(str, allowed))}")
        return value

    return check


def one_of(*words: str, unshown: tuple[str, ...] = ()) -> Check:
    """One of the words; `unshown` ones are accepted as well, and no error names them."""
    shown = " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))

    def check(name: str, value: str) -> str:
        if value not in words and value not in unshown:
            raise ConfigError(f"{name}={value}: use {shown}")
        return value

    return check


def absolute_path(name: str, value: str) -> str:
    """A path, made absolute, because processes have other working folders; "" is none."""
    return str(Path(value).expanduser().absolute()) if value else ""


def networks(name: str, value: str) -> str:
    """Addresses and networks, separated by commas."""
    try:
        networks_of(value)
    except ValueError as exc:
        raise ConfigError(
            f"{name}={value}: {exc}; use an address or a network, such as 10.0.0.7 or 10.0.0.0/24"
        ) from exc
    return value


def networks_of(text: str) -> tuple[Network, ...]:
    """The networks of such a setting. ValueError."""
    return tuple(ipaddress.ip_network(name.strip()) for name in text.split(",") if name.strip())
