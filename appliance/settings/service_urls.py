"""Addresses of services that the dashboard may use instead of its own: PostgreSQL and Redis.

They may hold a password, so no error shows one. Their parts are read by the clients' own readers (dashboard/database,
dashboard/settings.py); here is only looked at what would be a mistake.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from appliance.settings.checks import Check
from gantrymq.errors import ConfigError

POSTGRESQL = ("postgresql", "postgres")
REDIS = ("redis", "rediss", "unix")


def _check_url(name: str, url: str, schemes: tuple[str, ...]) -> None:
    """Raises ConfigError, without the address, when this can't be one of those schemes. "" is fine."""
    if not url:
        return
    example = f"{schemes[0]}://…"
    try:
        parts = urlsplit(url)
        port = parts.port if "," not in parts.netloc else None  # PostgreSQL takes several hosts, which are no URL
    except ValueError as exc:
        raise ConfigError(f"{name}: the address can't be read; use {example}") from exc
    if parts.scheme not in schemes:
        raise ConfigError(f"{name}: the address has to begin with {' or '.join(f'{one}://' for one in schemes)}")
    if port == 0:
        raise ConfigError(f"{name}: port 0 is none; use {example}")


def url(*schemes: str) -> Check:
    """An address of one of the schemes, or none."""

    def check(name: str, value: str) -> str:
        _check_url(name, value, schemes)
        return value

    return check


def without_password(url: str) -> str:
    """The address for people: who, where, and nothing secret."""
    parts = urlsplit(url)
    who, _, where = parts.netloc.rpartition("@")
    user = who.partition(":")[0]
    return f"{parts.scheme}://{f'{user}@' if user else ''}{where}{parts.path}"
