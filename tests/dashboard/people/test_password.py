"""One's own password, on a page."""

from __future__ import annotations

from django.test import AsyncClient

from dashboard.models.management import User
from tests.dashboard.conftest import PASSWORD

NEW = "another way, quite as long"


async def logged_in(password: str = PASSWORD) -> AsyncClient:
    client = AsyncClient()
    answer = await client.post("/login", {"username": "admin", "password": password})
    assert answer.status_code == 302, answer.content
    return client


def fields(**changes: str) -> dict[str, str]:
    return {"current": PASSWORD, "password": NEW, "again": NEW} | changes


async def test_a_new_password_logs_out_every_other_browser(admin: User) -> None:
    here, there = await logged_in(), await logged_in()
    answer = await here.post("/password", fields())
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert (await here.get("/tokens")).status_code == 200
    assert (await there.get("/tokens")).status_code == 302
    assert (await AsyncClient().post("/login", {"username": "admin", "password": PASSWORD})).status_code == 422
    await logged_in(NEW)


async def test_without_the_password_of_now_or_with_a_poor_one_nothing_changes(admin: User) -> None:
    here, there = await logged_in(), await logged_in()
    for changes, words in (
        ({"current": "guessed wrongly"}, "That is not your password"),
        ({"again": "something else"}, "The two passwords differ"),
        ({"password": "short", "again": "short"}, "at least 10 characters"),
        ({"current": ""}, "required"),
    ):
        answer = await here.post("/password", fields(**changes))
        assert answer.status_code == 422 and words in answer.content.decode(), changes
        assert NEW not in answer.content.decode() and PASSWORD not in answer.content.decode()
    assert (await there.get("/tokens")).status_code == 200
    assert (await AsyncClient().get("/password")).status_code == 302


async def test_guessing_on_the_page_is_bounded_as_at_the_door(admin: User) -> None:
    here = await logged_in()
    for _ in range(40):
        answer = await here.post("/password", fields(current="wrong, and wrong again"))
        if answer.status_code == 429:
            break
    assert answer.status_code == 429 and int(answer.headers["Retry-After"]) > 0
