"""Log in, log out, lockout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import AsyncClient

from dashboard.access import lockout
from dashboard.models.management import LoginFailure, User
from tests.dashboard.conftest import PASSWORD, Client


async def try_to_log_in(client: AsyncClient, password: str = PASSWORD, **more: str):  # type: ignore[no-untyped-def]
    return await client.post("/login", {"username": "admin", "password": password, **more})


async def test_the_right_password_opens(admin: User) -> None:
    client = AsyncClient()
    assert (await client.get("/login")).status_code == 200
    answer = await try_to_log_in(client)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert (await client.get("/tokens")).status_code == 200


async def test_names_match_whatever_their_case(admin: User) -> None:
    answer = await AsyncClient().post("/login", {"username": "ADMIN", "password": PASSWORD})
    assert answer.status_code == 302


async def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(admin: User) -> None:
    texts = []
    for username in ("admin", "nobody"):
        answer = await AsyncClient().post("/login", {"username": username, "password": "wrong"})
        assert answer.status_code == 422
        texts.append("Name and password don&#x27;t match." in answer.content.decode())
    assert texts == [True, True]


async def test_five_wrong_tries_lock_the_name_even_for_the_right_password(admin: User) -> None:
    client = AsyncClient()
    for _ in range(5):
        assert (await try_to_log_in(client, "wrong")).status_code == 422
    locked = await try_to_log_in(client)
    assert locked.status_code == 429
    assert "Too many wrong attempts" in locked.content.decode()
    await LoginFailure.objects.aupdate(at=datetime.now(UTC) - timedelta(minutes=11))
    assert (await try_to_log_in(client)).status_code == 302


async def test_a_right_password_clears_the_count(admin: User) -> None:
    client = AsyncClient()
    for _ in range(4):
        await try_to_log_in(client, "wrong")
    assert (await try_to_log_in(client)).status_code == 302
    assert await LoginFailure.objects.acount() == 0


def test_a_lock_lasts_ten_minutes_from_the_fifth_failure_within_five() -> None:
    start = datetime(2026, 11, 21, tzinfo=UTC)
    quick = [start + timedelta(seconds=10 * n) for n in range(5)][::-1]
    slow = [start + timedelta(seconds=80 * n) for n in range(5)][::-1]
    assert lockout.end_of_lock(quick, 5) == quick[0] + timedelta(minutes=10)
    assert lockout.end_of_lock(slow, 5) is None
    assert lockout.end_of_lock(quick[:4], 5) is None


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "///evil.example/x"]
)
async def test_s22_after_the_log_in_nobody_is_sent_elsewhere(target: str, admin: User) -> None:
    answer = await try_to_log_in(AsyncClient(), next=target)
    assert answer.headers["Location"] == "/"


async def test_after_the_log_in_the_wanted_page_opens(admin: User) -> None:
    client = AsyncClient()
    asked = await client.get("/topics?q=a")
    assert asked.headers["Location"] == "/login?next=%2Ftopics%3Fq%3Da"
    assert (await try_to_log_in(client, next="/topics?q=a")).headers["Location"] == "/topics?q=a"


async def test_s16_the_session_key_changes_at_log_in_and_dies_at_log_out(admin: User) -> None:
    client = AsyncClient()
    await try_to_log_in(client)
    [name] = [cookie for cookie in client.cookies if "session" in cookie]
    first = client.cookies[name]
    assert first["httponly"] and first["samesite"] == "Lax"
    kept = first.value
    assert (await client.get("/logout")).status_code == 405
    assert (await client.post("/logout")).status_code == 302
    client.cookies[name] = kept
    assert (await client.get("/tokens")).status_code == 302


async def test_a_logged_in_person_does_not_log_in_again(log_in: Client) -> None:
    assert (await (await log_in()).get("/login")).status_code == 302
