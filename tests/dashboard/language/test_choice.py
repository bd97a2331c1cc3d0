"""Which language a page speaks: the account's, else the cookie's, else the browser's; programs get English."""

from __future__ import annotations

from django.test import AsyncClient

from dashboard.cluster.gateway import Gateway
from dashboard.live import frames
from dashboard.models.management import User
from tests.dashboard.conftest import Client, api_for

CHINESE = {"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}


async def body_of(client: AsyncClient, address: str, **headers: str) -> str:
    return (await client.get(address, headers=headers)).content.decode()


async def test_before_log_in_the_browser_says_which_language_and_the_cookie_knows_better(admin: User) -> None:
    client = AsyncClient()
    assert '<html lang="zh-CN"' in await body_of(client, "/login", **CHINESE)
    assert '<html lang="en"' in await body_of(client, "/login", **{"Accept-Language": "fr"})
    await client.post("/preferences/language", {"language": "en", "back": "/login"})
    assert '<html lang="en"' in await body_of(client, "/login", **CHINESE)


async def test_the_choice_is_kept_with_the_account(log_in: Client) -> None:
    client = await log_in("reader")
    answer = await client.post("/preferences/language", {"language": "zh-hans", "back": "/tokens"})
    assert answer.headers["Location"] == "/tokens"
    assert (await User.objects.aget(username="reader")).language == "zh-hans"
    client.cookies.pop("gantry_language")
    page = await body_of(client, "/tokens")
    assert '<html lang="zh-CN"' in page
    assert "消费者组" in page


async def test_a_language_that_is_not_there_changes_nothing(log_in: Client) -> None:
    client = await log_in("reader")
    answer = await client.post("/preferences/language", {"language": "tlh", "back": "//evil"})
    assert answer.headers["Location"] == "/"
    assert (await User.objects.aget(username="reader")).language == ""
    assert '<html lang="en"' in await body_of(client, "/tokens")


async def test_a_program_gets_english(admin: User, gateway: Gateway) -> None:
    admin.language = "zh-hans"
    await admin.asave()
    api = await api_for(admin)
    api.headers |= CHINESE
    status, told = await api.call("get", "/topics/no-such-topic")
    assert status == 404
    assert told["detail"].isascii(), told


async def test_the_scripts_texts_come_in_each_language_and_may_be_kept() -> None:
    client = AsyncClient()
    page = await body_of(client, "/login", **CHINESE)
    address = next(part for part in page.split('"') if part.startswith("/words/zh-hans/"))
    answer = await client.get(address)
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in answer.headers["Cache-Control"]
    assert "gettext" in answer.content.decode()


def test_a_frame_is_made_once_for_each_language_that_is_watched() -> None:
    assert frames.languages_of(frames.OVERVIEW) == []
    for language in ("en", "zh-hans", "en"):
        frames.listen(frames.OVERVIEW, language)
    assert frames.languages_of(frames.OVERVIEW) == ["en", "zh-hans"]
    frames.leave(frames.OVERVIEW, "en")
    assert frames.languages_of(frames.OVERVIEW) == ["en", "zh-hans"]
    for language in ("en", "zh-hans"):
        frames.leave(frames.OVERVIEW, language)
    assert frames.languages_of(frames.OVERVIEW) == []
