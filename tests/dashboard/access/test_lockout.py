"""Guessing is slow; nobody locks anybody else out."""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.cookies import SimpleCookie

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from django.test import AsyncClient

from dashboard.access import hashing, known_browsers, lockout
from dashboard.access.in_flight import InFlight
from dashboard.access.known_browsers import Source
from dashboard.models.management import LoginFailure, User
from tests.dashboard.conftest import PASSWORD, ClientAt

STRANGER = "198.51.100.66"


async def try_from(client: AsyncClient, password: str = PASSWORD, username: str = "admin") -> int:
    answer = await client.post("/login", {"username": username, "password": password})
    if answer.status_code == 429:
        assert int(answer.headers["Retry-After"]) >= 1
    return int(answer.status_code)


async def press(account: str) -> None:
    """A hundred wrong tries from as many addresses."""
    for number in range(lockout.ACCOUNT_FAILURES_MAX):
        assert (await sync_to_async(lockout.book)(account, Source(f"203.0.113.{number}", is_known=False))).failure_id


async def known_client(address: str) -> ClientAt:
    client = ClientAt(address)
    assert await try_from(client) == 302
    assert (await client.post("/logout")).status_code == 302
    return client


@pytest.fixture
def _no_bounds_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing.unknown_sources, "callers", InFlight(all_max=1000, of_one_max=1000))


@pytest.mark.slow
@pytest.mark.usefixtures("_no_bounds_in_flight")
async def test_s17_of_150_guesses_at_once_five_are_tried(admin: User) -> None:
    """S17: the booking alone holds, even where nothing else bounds what is in flight."""
    guesses = [f"guess {number}" for number in range(150)]
    guesses[119] = PASSWORD
    statuses = await asyncio.gather(*(try_from(ClientAt(STRANGER), guess) for guess in guesses))
    assert Counter(statuses) == {422: 5, 429: 145}
    assert await LoginFailure.objects.acount() == 5


@pytest.mark.slow
async def test_of_many_log_ins_at_once_of_one_address_most_are_told_to_come_again(admin: User) -> None:
    statuses = await asyncio.gather(*(try_from(ClientAt(STRANGER), "wrong") for _ in range(60)))
    assert set(statuses) == {422, 429}
    assert await LoginFailure.objects.acount() == statuses.count(422) <= 5, "who was not tried is not counted"


async def test_bookings_from_many_threads_never_pass_the_limit(transactional_db: None) -> None:
    def book(_: int) -> bool:
        try:
            return lockout.book("admin", Source(STRANGER, is_known=False)).failure_id is not None
        finally:
            connections.close_all()

    def all_at_once() -> list[bool]:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(book, range(40)))

    assert sum(await asyncio.to_thread(all_at_once)) == lockout.SOURCE_FAILURES_MAX


async def test_a_stranger_locks_himself_out_and_nobody_else(admin: User) -> None:
    stranger = ClientAt(STRANGER)
    statuses = [await try_from(stranger, "wrong") for _ in range(15)]
    assert statuses == [422] * 5 + [429] * 10
    assert await try_from(ClientAt("192.0.2.1")) == 302


async def test_strangers_from_everywhere_make_it_slow_and_lock_no_clean_address_out(admin: User) -> None:
    await press("admin")
    assert await try_from(ClientAt("192.0.2.1")) == 302
    typing_badly = ClientAt("192.0.2.2")
    assert [await try_from(typing_badly, "wrong") for _ in range(4)] == [422, 422, 429, 429]


async def test_one_address_has_thirty_tries_whatever_the_names(admin: User) -> None:
    for number in range(lockout.ADDRESS_FAILURES_MAX):
        await sync_to_async(lockout.book)(f"name{number}", Source(STRANGER, is_known=False))
    assert await try_from(ClientAt(STRANGER)) == 429


async def test_hosts_of_one_ipv6_network_share_their_tries(admin: User) -> None:
    for host in range(5):
        assert await try_from(ClientAt(f"2001:db8:0:1::{host:x}"), "wrong") == 422
    assert await try_from(ClientAt("2001:db8:0:1::ffff")) == 429
    assert await try_from(ClientAt("2001:db8:0:2::1")) == 302


async def test_a_browser_that_was_here_has_its_own_count(admin: User) -> None:
    client = await known_client("192.0.2.1")
    neighbour = ClientAt("192.0.2.1")
    while await try_from(neighbour, "wrong") != 429:
        pass
    await press("admin")
    assert [await try_from(client, "mistyped") for _ in range(4)] == [422] * 4
    assert await try_from(client) == 302, "from an address that is locked, for an account under attack"


async def test_a_browser_that_was_here_has_five_tries_too(admin: User) -> None:
    client = await known_client("192.0.2.1")
    assert [await try_from(client, "wrong") for _ in range(6)] == [422] * 5 + [429]
    assert await try_from(client) == 429
    assert await try_from(ClientAt("192.0.2.1")) == 302, "it locked itself out, not its address"


async def test_a_browser_is_known_for_its_own_accounts_only(admin: User, make_user) -> None:  # type: ignore[no-untyped-def]
    await sync_to_async(make_user)("reader", "rita")
    client = ClientAt(STRANGER)
    assert await try_from(client, username="rita") == 302
    await client.post("/logout")
    assert [await try_from(client, "guess") for _ in range(6)] == [422] * 5 + [429]
    assert {failure.source async for failure in LoginFailure.objects.all()} == {STRANGER}
    assert await try_from(client, username="rita") == 302


@pytest.mark.parametrize("change", ["forged", "old"])
async def test_a_cookie_that_is_not_ours_or_too_old_counts_for_nothing(
    change: str, admin: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await known_client("192.0.2.1")
    if change == "forged":
        morsel = client.cookies[settings.KNOWN_BROWSER_COOKIE_NAME]
        client.cookies[settings.KNOWN_BROWSER_COOKIE_NAME] = morsel.value[:-2] + (
            "aa" if morsel.value[-2:] != "aa" else "bb"
        )
    else:
        monkeypatch.setattr(known_browsers, "LIFE_S", -1)
    await try_from(client, "wrong")
    assert [failure.source async for failure in LoginFailure.objects.all()] == ["192.0.2.1"]


async def test_the_cookie_is_no_use_elsewhere(admin: User) -> None:
    client = ClientAt("192.0.2.1")
    await try_from(client)
    morsel = client.cookies[settings.KNOWN_BROWSER_COOKIE_NAME]
    assert morsel["httponly"] and morsel["samesite"] == "Strict" and morsel["path"] == "/login"
    stolen = AsyncClient()
    stolen.cookies = SimpleCookie({settings.KNOWN_BROWSER_COOKIE_NAME: morsel.value})
    assert (await stolen.get("/tokens")).headers["Location"].startswith("/login"), "it opens nothing"


async def test_a_try_that_found_no_place_is_taken_back(admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing.unknown_sources, "callers", InFlight(all_max=0, of_one_max=0))
    answer = await ClientAt(STRANGER).post("/login", {"username": "admin", "password": PASSWORD})
    assert answer.status_code == 429 and "at once" in answer.content.decode()
    assert not await LoginFailure.objects.aexists()


async def test_who_has_been_here_does_not_wait_among_strangers(admin: User, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await known_client("192.0.2.1")
    monkeypatch.setattr(hashing.unknown_sources, "callers", InFlight(all_max=0, of_one_max=0))
    assert await try_from(ClientAt("192.0.2.1")) == 429
    assert await try_from(client) == 302


async def test_what_no_longer_matters_is_forgotten(transactional_db: None) -> None:
    long_ago = datetime.now(UTC) - timedelta(minutes=16)
    await LoginFailure.objects.acreate(account_key="admin", source=STRANGER, at=long_ago)
    await sync_to_async(lockout.book)("other", Source("192.0.2.1", is_known=False))
    assert [failure.account_key async for failure in LoginFailure.objects.all()] == ["other"]
