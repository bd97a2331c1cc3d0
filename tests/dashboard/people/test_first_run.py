"""The first administrator: one token, one winner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from dashboard.models.management import Role, SetupToken, User
from dashboard.people.first_run import TOKEN_LIFE, issue_setup_token

GOOD = {"username": "ada", "password": "engine number nine", "again": "engine number nine"}


async def new_token() -> str:
    token = await sync_to_async(issue_setup_token)()
    assert token is not None
    return token


async def test_the_token_makes_the_administrator_and_logs_in(transactional_db: None) -> None:
    token, client = await new_token(), AsyncClient()
    page = await client.get(f"/first-run?token={token}")
    assert page.status_code == 200
    assert token in page.content.decode()
    answer = await client.post("/first-run", GOOD | {"token": token})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    user = await User.objects.aget()
    assert (user.username, user.role) == ("ada", Role.ADMIN)
    assert user.password.startswith("argon2$argon2id$")
    assert (await client.get("/tokens")).status_code == 200


async def test_s03_the_token_works_once(transactional_db: None) -> None:
    token = await new_token()
    assert (await AsyncClient().post("/first-run", GOOD | {"token": token})).status_code == 302
    again = await AsyncClient().post("/first-run", GOOD | {"token": token, "username": "eve"})
    assert again.status_code == 403
    assert (await AsyncClient().get(f"/first-run?token={token}")).status_code == 403
    assert await User.objects.acount() == 1
    assert await sync_to_async(issue_setup_token)() is None


@pytest.mark.slow
async def test_s03_of_many_claims_at_once_one_wins(transactional_db: None) -> None:
    """S03: the others are refused, or told to come again while passwords are hashed."""
    token = await new_token()
    answers = await asyncio.gather(
        *(AsyncClient().post("/first-run", GOOD | {"token": token, "username": f"user{n}"}) for n in range(50))
    )
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(302) == 1 and set(statuses) <= {302, 403, 429}
    assert all(answer.headers["Retry-After"] for answer in answers if answer.status_code == 429)
    assert await User.objects.acount() == 1


async def test_s03_an_expired_or_foreign_token_is_refused(transactional_db: None) -> None:
    token = await new_token()
    assert (await AsyncClient().get("/first-run?token=guess")).status_code == 403
    assert (await AsyncClient().get("/first-run")).status_code == 403
    await SetupToken.objects.aupdate(expires_at=timezone.now() - timedelta(seconds=1))
    assert (await AsyncClient().post("/first-run", GOOD | {"token": token})).status_code == 403
    assert not await User.objects.aexists()


async def test_a_new_start_voids_the_old_token(transactional_db: None) -> None:
    old, new = await new_token(), await new_token()
    assert (await AsyncClient().get(f"/first-run?token={old}")).status_code == 403
    assert (await AsyncClient().get(f"/first-run?token={new}")).status_code == 200
    kept = await SetupToken.objects.aget()
    assert new not in kept.token_hash
    assert kept.expires_at - timezone.now() <= TOKEN_LIFE


async def test_weak_passwords_are_refused_and_the_token_stays_good(transactional_db: None) -> None:
    token = await new_token()
    for password, again in (
        ("short", "short"),
        ("password123", "password123"),
        ("ada", "ada"),
        ("a good long one", "x"),
    ):
        form = {"token": token, "username": "ada", "password": password, "again": again}
        assert (await AsyncClient().post("/first-run", form)).status_code == 422
    assert (await AsyncClient().post("/first-run", GOOD | {"token": token})).status_code == 302


async def test_it_refuses_other_methods(make_user: Callable[..., User]) -> None:
    assert (await AsyncClient().put("/first-run")).status_code == 405
