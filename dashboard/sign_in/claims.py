"""From the provider's claims to a person with a role. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.sign_in import READER, ROLES, role_rules
from dashboard.sign_in.errors import Refused

SUBJECT_CHARS_MAX = 255  # by the standard
VALUES_MAX = 2000  # groups of one person that are looked at


@dataclass(frozen=True, slots=True)
class Person:
    """Who signed in. subject: what stays the same at the provider, whatever the name."""

    subject: str
    name: str
    role: str
    prefixes: tuple[str, ...]


def person_of(claims: Mapping[str, Any], settings: ApplianceConfig) -> Person:
    """Raises Refused, when the name is missing or no role fits."""
    subject = claims["sub"]
    if len(subject) > SUBJECT_CHARS_MAX:
        raise Refused(gettext_noop("The provider's id for you is too long."))
    name = claim_at(claims, settings.oidc_user_claim)
    if not isinstance(name, str) or not name:
        text = gettext_noop("The provider does not give your name: it sent no %(claim)s.")
        raise Refused(text, claim=settings.oidc_user_claim, subject=subject)
    found = values_of(claim_at(claims, settings.oidc_role_claim))
    rules = [rule for rule in role_rules(settings.oidc_roles) if rule.value in found]
    if not rules:
        if settings.oidc_others == READER:
            return Person(subject, name, READER, ())
        raise Refused(gettext_noop("You have no role here. Ask an administrator."), name=name, subject=subject)
    role = max((rule.role for rule in rules), key=ROLES.index)
    limits = [rule.prefixes for rule in rules if rule.role == role]
    every = () in limits  # a rule without a limit
    return Person(subject, name, role, () if every else tuple(sorted({prefix for one in limits for prefix in one})))


def claim_at(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or inside an object: realm_access.roles. None when it is not there."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def values_of(claim: Any) -> set[str]:
    """The texts of a claim that is a text or a list."""
    listed = claim if isinstance(claim, list) else [claim]
    return {value for value in listed[:VALUES_MAX] if isinstance(value, str)}
