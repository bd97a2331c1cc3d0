"""Which account a person of the provider gets: their own, and no one else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dashboard.models.identities import Identity
from dashboard.models.management import Role, User
from dashboard.people import user_accounts
from dashboard.people.user_accounts import UserProblem
from dashboard.sign_in.claims import Person
from dashboard.sign_in.errors import Refused
from dashboard.sign_in.people import admit

pytestmark = pytest.mark.django_db(transaction=True)

ISSUER, OTHER = "https://id.example", "https://other.example"


def person(**changed: Any) -> Person:
    return Person(**({"subject": "4711", "name": "grace", "role": "operator", "prefixes": ("a-",)} | changed))


def test_the_first_sign_in_makes_an_account_without_a_password() -> None:
    made = admit(person(), ISSUER)
    assert made.is_new and (made.user.username, made.user.role, made.user.prefixes) == ("grace", "operator", ("a-",))
    assert not made.user.has_usable_password()
    again = admit(person(), ISSUER)
    assert (again.user.pk, again.is_new, again.changes) == (made.user.pk, False, {})


def test_role_and_names_are_the_providers_word_at_each_sign_in() -> None:
    admit(person(), ISSUER)
    raised = admit(person(role="admin", prefixes=()), ISSUER)
    assert raised.changes == {
        "role": {"before": "operator", "after": "admin"}, "prefixes": {"before": ["a-"], "after": []},
    }  # fmt: skip
    assert User.objects.get(username="grace").role == Role.ADMIN
    admit(person(role="reader"), ISSUER)
    assert User.objects.get(username="grace").prefixes == ("a-",)


@pytest.mark.parametrize("name", ["admin", "ADMIN"])
def test_an_account_is_not_given_to_who_comes_with_its_name(make_user: Callable[..., User], name: str) -> None:
    admin = make_user()
    with pytest.raises(Refused, match="belongs to another account"):
        admit(person(name=name, role="admin", prefixes=()), ISSUER)
    assert not Identity.objects.exists() and User.objects.get() == admin


def test_people_are_told_apart_by_issuer_and_subject() -> None:
    first = admit(person(), ISSUER)
    for other in ((person(subject="4712"), ISSUER), (person(), OTHER)):
        with pytest.raises(Refused, match="belongs to another account"):
            admit(*other)
    renamed = admit(person(name="grace.hopper"), ISSUER)
    assert renamed.user == first.user and renamed.user.username == "grace"


def test_a_closed_account_stays_closed() -> None:
    made = admit(person(), ISSUER)
    user_accounts.close_account(made.user)
    with pytest.raises(Refused, match="closed"):
        admit(person(role="admin", prefixes=()), ISSUER)
    assert User.objects.get().role == "operator"


@pytest.mark.parametrize("name", ["Grace Hopper", "a" * 65, "<script>", "\u202egrace", "a\n"])
def test_a_name_that_no_account_can_have_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="can't be an account's"):
        admit(person(name=name), ISSUER)


def test_the_last_administrator_with_a_password_stays_a_way_in(make_user: Callable[..., User]) -> None:
    local = make_user()
    admit(person(role="admin", prefixes=()), ISSUER)
    with pytest.raises(UserProblem, match="last administrator with a password"):
        user_accounts.set_role(local, Role.READER)
    with pytest.raises(UserProblem, match="last administrator with a password"):
        user_accounts.close_account(local)
    user_accounts.close_account(User.objects.get(username="grace"))  # the other one need not stay


def test_such_an_account_gets_no_password() -> None:
    made = admit(person(), ISSUER)
    with pytest.raises(UserProblem, match="signs in with https"):
        user_accounts.reset_password(made.user, "a long way from 1234")
