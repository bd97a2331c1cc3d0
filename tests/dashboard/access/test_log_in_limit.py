"""Log-ins in flight are bounded before Django sees them."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from django.conf import settings

from dashboard.access.log_in_limit import LogInLimit
from dashboard.models.management import User
from tests.dashboard.conftest import PASSWORD, ClientAt
from tests.waiting import until


class HeldPages:
    """Pages that answer when they are let go."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.inside = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.inside += 1
        await self.go_on.wait()
        self.inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def ask(limit: LogInLimit, address: str, *, path: str = "/login", method: str = "POST", cookie: str = "") -> int:
    sent: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        sent.append(event)

    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": [address, 4711]}
    await limit(scope, None, send)
    if sent[0]["status"] == 429:
        assert int(dict(sent[0]["headers"])[b"retry-after"]) >= 1
    return int(sent[0]["status"])


async def test_of_a_crowd_a_few_go_in_and_the_others_are_answered_at_once() -> None:
    pages = HeldPages()
    limit = LogInLimit(pages)
    crowd = [asyncio.create_task(ask(limit, "198.51.100.66")) for _ in range(300)]
    crowd += [asyncio.create_task(ask(limit, f"203.0.113.{number}")) for number in range(100)]
    await until(lambda: sum(task.done() for task in crowd) >= 400 - 16)
    assert pages.inside == 16, "four of the one address, and one each of others"
    pages.go_on.set()
    assert Counter(await asyncio.gather(*crowd)) == {429: 384, 200: 16}
    assert await ask(limit, "198.51.100.66") == 200, "the places are free again"


async def test_pages_are_not_counted_and_no_spelling_goes_around_it() -> None:
    pages = HeldPages()
    limit = LogInLimit(pages)
    inside = [asyncio.create_task(ask(limit, "198.51.100.66", path="/prefix/login")) for _ in range(4)]
    await until(lambda: pages.inside == 4)
    assert await ask(limit, "198.51.100.66") == 429
    others = [
        asyncio.create_task(ask(limit, "198.51.100.66", method="GET")),
        asyncio.create_task(ask(limit, "198.51.100.66", path="/topics/create")),
    ]
    await until(lambda: pages.inside == 6)
    pages.go_on.set()
    assert Counter(await asyncio.gather(*inside, *others)) == {200: 6}


async def test_who_has_been_here_goes_in_beside_a_crowd(admin: User) -> None:
    client = ClientAt("192.0.2.1")
    assert (await client.post("/login", {"username": "admin", "password": PASSWORD})).status_code == 302
    cookie = f"{settings.KNOWN_BROWSER_COOKIE_NAME}={client.cookies[settings.KNOWN_BROWSER_COOKIE_NAME].value}"
    pages = HeldPages()
    limit = LogInLimit(pages)
    crowd = [asyncio.create_task(ask(limit, f"203.0.113.{number}")) for number in range(16)]
    await until(lambda: pages.inside == 16)
    assert await ask(limit, "192.0.2.1") == 429
    assert await ask(limit, "192.0.2.1", cookie=cookie + "x") == 429
    known = asyncio.create_task(ask(limit, "192.0.2.1", cookie=f"other=1; {cookie}"))
    await until(lambda: pages.inside == 17)
    pages.go_on.set()
    assert Counter(await asyncio.gather(known, *crowd)) == {200: 17}


async def test_s17_a_provider_that_hangs_leaves_passwords_their_places() -> None:
    pages = HeldPages()
    limit = LogInLimit(pages)
    steps = [("GET", "/login/provider"), ("GET", "/login/provider/back")]
    crowd = [
        asyncio.create_task(ask(limit, f"203.0.113.{number}", method=method, path=path))
        for number in range(40)
        for method, path in steps
    ]
    await until(lambda: sum(task.done() for task in crowd) >= 80 - 16)
    assert pages.inside == 16, "eight of each step"
    by_password = asyncio.create_task(ask(limit, "203.0.113.1"))
    await until(lambda: pages.inside == 17)
    pages.go_on.set()
    assert await by_password == 200
    assert Counter(await asyncio.gather(*crowd)) == {429: 64, 200: 16}
