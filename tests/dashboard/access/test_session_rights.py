"""How long a session lives and what ends it, on pages and on the live socket; what its cookie says."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import AsyncClient
from django.utils import timezone

from dashboard.cluster.gateway import Gateway
from dashboard.models.management import User
from tests.dashboard.conftest import PASSWORD, Client, Topic
from tests.dashboard.live.socket_client import connected, frame_of


async def test_s16_the_cookie_is_for_our_pages_alone(admin: User) -> None:
    """S16: no script reads it, no other site's form sends it. Secure comes with https."""
    answer = await AsyncClient().post("/login", {"username": "admin", "password": PASSWORD})
    cookie = answer.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"] is True and cookie["samesite"] == "Lax" and cookie["path"] == "/"
    assert not cookie["domain"]
    csrf = (await AsyncClient().get("/login")).cookies[settings.CSRF_COOKIE_NAME]
    assert csrf["httponly"] is True and csrf["samesite"] == "Lax"


async def test_s16_a_session_that_was_idle_too_long_is_over(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("reader")
    assert (await client.get("/topics")).status_code == 200
    session = await Session.objects.aget()
    left_s = (session.expire_date - timezone.now()).total_seconds()
    assert 0 < left_s <= 12 * 3600
    await Session.objects.aupdate(expire_date=timezone.now())
    assert (await client.get("/topics")).status_code == 302


async def test_s16_s63_a_new_secret_key_ends_every_session(log_in: Client, gateway: Gateway, settings: Any) -> None:
    """S16, S63: what docs/security.md says to do with a folder that came out of a backup."""
    client = await log_in("admin")
    assert (await client.get("/topics")).status_code == 200
    settings.SECRET_KEY = "another-key-as-a-start-makes-it-when-there-is-none"
    assert (await client.get("/topics")).status_code == 302


async def test_s14_a_socket_gets_only_what_it_asked_for_and_may_see(log_in: Client, make_topic: Topic) -> None:
    """S14: the name of another topic's group in the subscription opens no second channel."""
    await make_topic("mine")
    await make_topic("not-mine")
    async with connected(await log_in("reader")) as socket:
        for name in (
            "live.topic.not-mine",
            "topic:mine,topic:not-mine",
            "topic:mine\0not-mine",
            "topic:../not-mine",
            "topic:\ud800",
        ):
            await socket.send_to(json.dumps({"subscribe": [name]}))
            answer = json.loads(await socket.receive_from(4))
            assert "error" in answer, (name, answer)
        await socket.send_to(json.dumps({"subscribe": ["topic:mine"]}))
        assert (await frame_of(socket, "topic:mine"))["channel"] == "topic:mine"
        assert await socket.receive_nothing(0.6)
