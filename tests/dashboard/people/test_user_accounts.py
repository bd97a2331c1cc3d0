"""Accounts as an administrator handles them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.utils import timezone

from dashboard.access import lockout
from dashboard.access.known_browsers import Source
from dashboard.access.permissions import SESSION_LIFE_S, SESSION_STARTED
from dashboard.models.management import ApiToken, LoginFailure, Role, User
from dashboard.people import user_accounts
from dashboard.people.user_accounts import UserProblem

Maker = Callable[..., User]


def open_session(user: User, started: float | None = None) -> str:
    session = SessionStore()
    session.update({"_auth_user_id": str(user.pk), SESSION_STARTED: int(started or time.time())})
    session.create()
    return str(session.session_key)


@pytest.mark.parametrize("name", ["ADMIN", "", "a b", "x" * 65, "ada\n"])
def test_names_that_can_not_be_taken_are_refused(name: str, admin: User) -> None:
    with pytest.raises(UserProblem):
        user_accounts.new_user(name, Role.READER)


@pytest.mark.parametrize("password", ["", "short", "password123", "1234567890", "ada.lovelace"])
def test_s18_weak_passwords_are_refused(password: str, transactional_db: None) -> None:
    with pytest.raises(UserProblem):
        user_accounts.add_user(user_accounts.new_user("ada.lovelace", Role.READER), password)
    assert not User.objects.exists()


def test_the_last_administrator_stays_one(make_user: Maker) -> None:
    ada, bob = make_user(Role.ADMIN, "ada"), make_user(Role.ADMIN, "bob")
    user_accounts.set_role(bob, Role.READER)
    with pytest.raises(UserProblem, match="last administrator"):
        user_accounts.set_role(ada, Role.OPERATOR)
    User.objects.filter(pk=bob.pk).update(role=Role.ADMIN, is_active=False)
    with pytest.raises(UserProblem, match="last administrator"):
        user_accounts.set_role(ada, Role.OPERATOR)


def test_sessions_that_hold_are_listed_and_others_are_not(make_user: Maker) -> None:
    ada, bob = make_user(Role.ADMIN, "ada"), make_user(Role.READER, "bob")
    open_session(ada)
    open_session(bob)
    open_session(ada, started=time.time() - SESSION_LIFE_S - 1)
    Session.objects.filter(session_key=open_session(ada)).update(expire_date=timezone.now() - timedelta(seconds=1))
    SessionStore().create()  # nobody's
    assert [item.username for item in user_accounts.open_sessions(ada)] == ["ada"]
    assert sorted(item.username for item in user_accounts.open_sessions()) == ["ada", "bob"]


def test_a_new_password_ends_what_the_old_one_opened(make_user: Maker) -> None:
    ada, bob = make_user(Role.ADMIN, "ada"), make_user(Role.READER, "bob")
    for user in (ada, ada, bob):
        open_session(user)
        lockout.book(user.username, Source("192.0.2.1", is_known=False))
        ends = timezone.now() + timedelta(days=1)
        ApiToken.objects.create(user=user, name="CI", token_hash=str(ApiToken.objects.count()), expires_at=ends)
    assert user_accounts.reset_password(ada, "a short way from 4321") == (2, 0)
    assert user_accounts.reset_password(ada, "a short way from 4321", revoke_tokens=True) == (0, 2)
    assert [item.username for item in user_accounts.open_sessions()] == ["bob"]
    assert {failure.account_key for failure in LoginFailure.objects.all()} == {"bob"}
    assert ApiToken.objects.filter(revoked_at=None).count() == 1


def test_locks_are_listed_and_forgotten_by_account_or_address(make_user: Maker) -> None:
    here, there = (Source(address, is_known=False) for address in ("192.0.2.1", "2001:db8:0:1::/64"))
    browser = Source("browser:x", is_known=True)
    for source in (here, there, browser):
        for _ in range(5):
            lockout.book("Ada", source)
    lockout.book("bob", here)
    assert {(lock.account, lock.source) for lock in lockout.locks()} == {
        ("ada", "192.0.2.1"),
        ("ada", "2001:db8:0:1::/64"),
        ("ada", "a known browser"),
    }
    assert lockout.forget(address="2001:db8:0:1::77") == 5
    assert lockout.forget(account="ADA") == 10
    assert lockout.forget() == 1 and lockout.locks() == []
