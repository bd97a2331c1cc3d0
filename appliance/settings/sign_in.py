"""Signing in with an OpenID Connect provider: what the settings oidc_… may say, and what oidc_roles means.

Roles are those of the dashboard's accounts. The secret is in a file or a variable of its own: it is no setting, so it
stands in no list of settings, on no page and in no log.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from appliance.settings.variables import SECRET_VARIABLE
from gantrymq.errors import ConfigError

if TYPE_CHECKING:
    from appliance.settings.appliance_config import ApplianceConfig

ROLES = ("reader", "operator", "admin")  # from least to most
REFUSE, READER = "refuse", "reader"  # people without a role
SECRET_CHARS_MAX = 4096
_PREFIX = re.compile(r"[|a-zA-Z0-9_-]{1,127}")


@dataclass(frozen=True, slots=True)
class RoleRule:
    """Who has `value` in the claim has the role; prefixes: for topics and groups that begin so, () is all."""

    value: str
    role: str
    prefixes: tuple[str, ...] = ()


def check_sign_in(config: ApplianceConfig) -> None:
    """Refuse what can't work or is not safe. Raises ConfigError."""
    if not config.oidc_issuer:
        for name in ("oidc_client_id", "oidc_client_secret_file", "oidc_roles", "oidc_trust"):
            if getattr(config, name):
                raise ConfigError(f"{name} is about a provider: name it with oidc_issuer")
        return
    _check_issuer(config.oidc_issuer)
    if not config.oidc_client_id:
        raise ConfigError("oidc_issuer needs oidc_client_id, the id that the provider gave this dashboard")
    if "openid" not in config.oidc_scope.split():
        raise ConfigError(f"oidc_scope={config.oidc_scope}: openid must be one of the scopes")
    if config.oidc_others not in (REFUSE, READER):
        raise ConfigError(f"oidc_others={config.oidc_others}: use {REFUSE} or {READER}")
    for name in ("oidc_user_claim", "oidc_role_claim"):
        if not getattr(config, name):
            raise ConfigError(f"{name} is empty: name a claim of the provider's tokens")
    if not role_rules(config.oidc_roles) and config.oidc_others == REFUSE:
        raise ConfigError(
            "with oidc_issuer and no role no person could sign in: say in oidc_roles who has which, such as "
            'oidc_roles = "gantry-admins=admin; orders-team=operator:orders-"'
        )


def role_rules(text: str) -> tuple[RoleRule, ...]:
    """The rules of oidc_roles. Raises ConfigError."""
    return tuple(_rule(part.strip()) for part in text.split(";") if part.strip())


def client_secret(config: ApplianceConfig, environment: Mapping[str, str] | None = None) -> str:
    """The client's secret, read each time, so that it can be changed without a restart; "" for a public client.

    Raises ConfigError when the file can't be read.
    """
    if not config.oidc_client_secret_file:
        return (os.environ if environment is None else environment).get(SECRET_VARIABLE, "").strip()
    try:
        with Path(config.oidc_client_secret_file).open(encoding="utf-8") as file:
            return file.read(SECRET_CHARS_MAX).strip()
    except (OSError, UnicodeDecodeError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is not a text"
        raise ConfigError(f"oidc_client_secret_file={config.oidc_client_secret_file}: {why}") from exc


def is_loopback_name(host: str) -> bool:
    """Whether the host is this machine: it is reached from here only, so no TLS is needed on the way."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_issuer(issuer: str) -> None:
    try:
        parts = urlsplit(issuer)
        _ = parts.port
    except ValueError as exc:
        raise ConfigError(f"oidc_issuer={issuer}: this is not a URL") from exc
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ConfigError(f"oidc_issuer={issuer}: give the URL without query, fragment and account")
    host = parts.hostname or ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_loopback_name(host))):
        raise ConfigError(f"oidc_issuer={issuer}: use an https URL (http only for a provider on this machine)")


def _rule(text: str) -> RoleRule:
    value, separator, told = text.rpartition("=")
    role, _, names = told.partition(":")
    value, role, prefixes = value.strip(), role.strip(), tuple(sorted(set(names.split())))
    example = "use VALUE=ROLE or VALUE=ROLE:PREFIX PREFIX, such as orders-team=operator:orders-"
    if not separator or not value:
        raise ConfigError(f"oidc_roles: {text!r} is not a rule; {example}")
    if role not in ROLES:
        raise ConfigError(f"oidc_roles: {text!r}: there is no role {role!r}; use {', '.join(ROLES)}")
    if wrong := [prefix for prefix in prefixes if not _PREFIX.fullmatch(prefix)]:
        raise ConfigError(f"oidc_roles: {text!r}: {wrong[0]!r} cannot begin a name; {example}")
    if role == "admin" and prefixes:
        raise ConfigError(f"oidc_roles: {text!r}: an administrator sees everything; leave the prefixes out")
    return RoleRule(value, role, prefixes)
