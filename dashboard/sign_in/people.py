"""From a person of the provider to an account here. They belong together by issuer and subject, never by a name.

A name is what people choose; so an account that is here already is not given away to who comes with its name. Blocking.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_noop

from dashboard.audit.notes import changed
from dashboard.limits.names import PREFIXES_MAX
from dashboard.models.identities import Identity
from dashboard.models.management import Role, User
from dashboard.people.user_accounts import UserProblem, new_user
from dashboard.sign_in.claims import Person
from dashboard.sign_in.errors import Refused

ACCOUNTS_MAX = 10_000  # made by sign-ins


@dataclass(frozen=True, slots=True)
class Admitted:
    """is_new: the account was made now. changes: of its role and names, as the audit log tells them."""

    user: User
    is_new: bool
    changes: dict[str, Any]


def admit(person: Person, issuer: str) -> Admitted:
    """The person's account, made or brought up to date. Raises Refused."""
    if len(person.prefixes) > PREFIXES_MAX:
        raise _refused(
            person,
            gettext_noop("Your groups at the provider have too many prefixes: at most %(most)s."),
            most=PREFIXES_MAX,
        )
    try:
        return _admit(person, issuer)
    except IntegrityError:  # two first sign-ins at once: the other one has made it
        return _admit(person, issuer)


def _admit(person: Person, issuer: str) -> Admitted:
    with transaction.atomic():
        known = Identity.objects.filter(issuer=issuer, subject=person.subject).select_related("user").first()
        if known is None:
            return Admitted(_make(person, issuer), True, {})
        user = known.user
        if not user.is_active:
            raise _refused(person, gettext_noop("Your account here is closed."))
        after = {"role": person.role, "prefixes": list(person.prefixes)}
        changes = changed({"role": user.role, "prefixes": list(user.prefixes)}, after)
        if changes:
            user.role, user.name_prefixes = person.role, " ".join(person.prefixes)
            user.save(update_fields=["role", "name_prefixes"])
        return Admitted(user, False, changes)


def _make(person: Person, issuer: str) -> User:
    if Identity.objects.count() >= ACCOUNTS_MAX:
        text = gettext_noop("%(most)s accounts have been created by sign-ins; that is the maximum.")
        raise _refused(person, text, most=ACCOUNTS_MAX)
    if User.objects.filter(username__iexact=person.name).exists():
        text = gettext_noop(
            "The name “%(taken)s” belongs to another account here. Log in with its password, or ask an administrator."
        )
        raise _refused(person, text, taken=person.name)
    try:
        user = new_user(person.name, Role(person.role))
    except UserProblem as exc:
        text = gettext_noop("Your name “%(unusable)s” can't be an account's: %(reason)s")
        raise _refused(person, text, unusable=person.name[:64], reason=exc) from exc
    user.set_unusable_password()
    user.name_prefixes = " ".join(person.prefixes)
    user.save()
    Identity.objects.create(user=user, issuer=issuer, subject=person.subject)
    return user


def _refused(person: Person, text: str, **facts: object) -> Refused:
    return Refused(text, **facts, name=person.name, subject=person.subject)
