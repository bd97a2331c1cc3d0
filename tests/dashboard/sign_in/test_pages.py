"""The button, the way there and back: sessions, audit entries, limits, and what is told when it does not work."""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings
from django.test import AsyncClient

from dashboard.access.lockout import SOURCE_FAILURES_MAX
from dashboard.models.audit import AuditEntry
from dashboard.models.identities import Identity
from dashboard.models.management import LoginFailure, User
from tests.dashboard.conftest import PASSWORD, Client
from tests.dashboard.sign_in.lying_provider import CLIENT, SECRET, LyingProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def provider(lying: LyingProvider, monkeypatch: pytest.MonkeyPatch) -> LyingProvider:
    """A provider that is set up: who is in admins is an administrator, who is in orders reads some names."""
    config = dataclasses.replace(
        settings.APPLIANCE, oidc_issuer=lying.issuer, oidc_client_id=CLIENT, oidc_name="Crane ID",
        oidc_roles="admins=admin; orders=reader:orders-",
    )  # fmt: skip
    monkeypatch.setenv("GANTRY_OIDC_CLIENT_SECRET", SECRET)
    monkeypatch.setattr(settings, "APPLIANCE", config)
    return lying


async def sign_in(provider: LyingProvider, client: AsyncClient, next_page: str = "", **told: str) -> Any:
    """To the provider and back; the response to what the browser brings."""
    begun = await client.get("/login/provider", {"next": next_page} if next_page else {})
    assert begun.status_code == 302, begun.content
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun.headers["Location"]).query).items()}
    provider.nonce = asked["nonce"]
    return await client.get("/login/provider/back", {"code": "a-code", "state": asked["state"]} | told)


async def test_it_is_off_until_it_is_set_up(transactional_db: None) -> None:
    client = AsyncClient()
    assert b"Sign in with" not in (await client.get("/login")).content
    for path in ("/login/provider", "/login/provider/back?code=a&state=b"):
        assert (await client.get(path)).status_code == 404


async def test_s16_a_sign_in_makes_an_account_and_a_new_session(provider: LyingProvider) -> None:
    client = AsyncClient()
    page = (await client.get("/login?next=/tokens")).content.decode()
    assert "Sign in with Crane ID" in page and "/login/provider?next=/tokens" in page
    response = await sign_in(provider, client, "/tokens")
    assert (response.status_code, response.headers["Location"]) == (302, "/tokens")
    user = await User.objects.aget(username="grace")
    assert user.role == "admin" and user.last_login is not None
    assert (await client.get("/tokens")).status_code == 200
    cookie = response.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"] and cookie["samesite"] == "Lax"
    other = AsyncClient(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}=chosen-by-another"})
    await sign_in(provider, other)
    assert other.cookies[settings.SESSION_COOKIE_NAME].value not in ("chosen-by-another", cookie.value)
    assert (await Identity.objects.aget()).subject == "4711"


async def test_s60_sign_ins_are_written_down_the_refused_ones_too(provider: LyingProvider) -> None:
    await sign_in(provider, AsyncClient())
    provider.claims["groups"] = ["orders"]
    await sign_in(provider, AsyncClient())
    provider.claims.update(sub="4712", preferred_username="mallory", groups=[])
    refused = await sign_in(provider, AsyncClient())
    assert refused.status_code == 403 and b"no role here" in refused.content
    rows = [(row.action, row.who, row.target) async for row in AuditEntry.objects.order_by("pk")]
    assert rows == [
        ("account created by a sign-in", "grace", "grace"), ("logged in", "grace", ""),
        ("role changed by a sign-in", "grace", "grace"), ("logged in", "grace", ""),
        ("sign-in rejected", "", "mallory"),
    ]  # fmt: skip
    change = await AuditEntry.objects.filter(action="role changed by a sign-in").aget()
    assert json.loads(change.details)["role"] == {"before": "admin", "after": "reader"}
    assert (await User.objects.aget()).prefixes == ("orders-",)


async def test_a_taken_name_leads_to_no_ones_account(provider: LyingProvider, admin: User) -> None:
    provider.claims["preferred_username"] = "Admin"
    client = AsyncClient()
    response = await sign_in(provider, client)
    assert response.status_code == 403 and "belongs to another account" in response.content.decode()
    assert (await client.get("/users")).status_code == 302
    assert await User.objects.acount() == 1


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
async def test_s22_the_way_back_stays_on_this_site(provider: LyingProvider, target: str) -> None:
    response = await sign_in(provider, AsyncClient(), target)
    assert response.headers["Location"] == "/"


async def test_what_another_browser_began_opens_nothing(provider: LyingProvider) -> None:
    begun = await AsyncClient().get("/login/provider")
    state = parse_qs(urlsplit(begun.headers["Location"]).query)["state"][0]
    for client in (AsyncClient(), AsyncClient()):
        response = await client.get("/login/provider/back", {"code": "stolen", "state": state})
        assert response.status_code == 422 and b"not started in this browser" in response.content
    other = AsyncClient()
    await other.get("/login/provider")
    response = await other.get("/login/provider/back", {"code": "stolen", "state": state})
    assert response.status_code == 422 and settings.SESSION_COOKIE_NAME not in response.cookies
    assert not [path for path, *_ in provider.asked if path == "/token"]
    assert not await LoginFailure.objects.aexists()  # any page can lead a browser there: it locks no one out


async def test_an_answer_counts_once(provider: LyingProvider) -> None:
    client = AsyncClient()
    response = await sign_in(provider, client)
    assert response.cookies[settings.SIGN_IN_COOKIE_NAME].value == ""
    again = await client.get(response.request["path"], {"code": "a-code", "state": "any"})
    assert again.status_code == 422


async def test_a_changed_cookie_is_no_begin(provider: LyingProvider) -> None:
    client = AsyncClient()
    await client.get("/login/provider")
    client.cookies[settings.SIGN_IN_COOKIE_NAME] = client.cookies[settings.SIGN_IN_COOKIE_NAME].value[:-1] + "?"
    response = await client.get("/login/provider/back", {"code": "a", "state": "b"})
    assert response.status_code == 422 and b"Start again" in response.content


async def test_s17_answers_that_do_not_hold_lock_no_one_out(provider: LyingProvider) -> None:
    """S17. Codes and tokens can't be guessed: counting them would only let one person of an address lock out all."""
    provider.sign_with_secret()
    for _ in range(SOURCE_FAILURES_MAX + 1):
        assert (await sign_in(provider, AsyncClient())).status_code == 422
    provider.raw["/token"] = (400, {}, json.dumps({"error": "invalid_grant"}).encode())
    for _ in range(SOURCE_FAILURES_MAX + 1):
        assert (await sign_in(provider, AsyncClient())).status_code == 422
    assert not await LoginFailure.objects.aexists()
    assert not await User.objects.aexists()


async def test_a_provider_that_is_down_leaves_the_password_as_a_way_in(provider: LyingProvider, admin: User) -> None:
    provider.raw["/token"] = (503, {}, b"")
    client = AsyncClient()
    response = await sign_in(provider, client)
    assert response.status_code == 503 and b"answered with 503" in response.content
    assert b'name="password"' in response.content and not await LoginFailure.objects.aexists()
    assert (await client.post("/login", {"username": "admin", "password": PASSWORD})).status_code == 302


async def test_s62_no_secret_gets_into_logs_pages_or_the_audit_log(
    provider: LyingProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = AsyncClient()
    pages = [(await sign_in(provider, client)).content]
    provider.claims["nonce"] = "another"
    pages.append((await sign_in(provider, client)).content)
    provider.raw["/token"] = (400, {}, json.dumps({"error": SECRET[:5], "error_description": SECRET}).encode())
    pages.append((await sign_in(provider, client)).content)
    told = "".join(str(record.__dict__) for record in caplog.records) + str(pages)
    told += str([row.details async for row in AuditEntry.objects.all()])
    for secret in (SECRET, "an-access-token", provider.id_token()[:40]):
        assert secret not in told


async def test_who_signed_in_there_can_sign_out_there(provider: LyingProvider) -> None:
    provider.metadata["end_session_endpoint"] = f"{provider.issuer}/out"
    client = AsyncClient()
    await sign_in(provider, client)
    response = await client.post("/logout", follow=True)
    page = response.content.decode()
    assert f"{provider.issuer}/out?client_id={CLIENT}" in page and "sign out there" in page
    assert (await client.get("/tokens")).status_code == 302


async def test_a_password_is_not_offered_to_who_has_none_here(provider: LyingProvider, log_in: Client) -> None:
    client = AsyncClient()
    await sign_in(provider, client)
    page = await client.get("/password")
    assert "not stored here" in page.content.decode() and 'name="password"' not in page.content.decode()
    refused = await client.post("/password", {"current": "x", "password": PASSWORD, "again": PASSWORD})
    assert refused.status_code == 403
    user = await User.objects.aget(username="grace")
    assert not user.has_usable_password()
    shown = (await (await log_in("admin")).get(f"/users/{user.pk}")).content.decode()
    assert provider.issuer in shown
