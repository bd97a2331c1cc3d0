"""Accounts, invitations and tokens over REST, for tokens that were made for it."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from dashboard.access import tokens
from dashboard.models.audit import AuditEntry
from dashboard.models.management import ApiToken, User
from tests.dashboard.conftest import PASSWORD, Api, Client, api_for


async def test_a_token_makes_and_ends_its_accounts_tokens(
    users: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await api_for(users["operator"], "admin")
    status, made = await api.call("post", "/tokens", {"name": "CI", "scope": "read", "life_days": 7})
    assert (status, made["scope"], made["shown_once"][: len(made["start"])]) == (201, "read", made["start"])
    assert (await Api(made["shown_once"]).call("get", "/alerts"))[0] == 200
    assert (await Api(made["shown_once"]).call("get", "/tokens"))[0] == 403
    _, listed = await api.call("get", "/tokens")
    assert [row["name"] for row in listed["items"]] == ["CI", "test"]
    assert made["shown_once"] not in repr(listed)
    monkeypatch.setattr(tokens, "TOKENS_MAX", 2)
    status, refused = await api.call("post", "/tokens", {"name": "one more"})
    assert (status, refused["detail"]) == (409, "2 tokens is the maximum. Revoke one first.")
    assert (await api.call("delete", f"/tokens/{made['id']}"))[0] == 204
    assert (await api.call("delete", f"/tokens/{made['id']}"))[0] == 404
    assert (await Api(made["shown_once"]).call("get", "/alerts"))[0] == 401


async def test_no_token_ends_a_token_of_another_account(users: dict[str, User]) -> None:
    await api_for(users["admin"], "read")
    [theirs] = [token async for token in ApiToken.objects.filter(user=users["admin"])]
    api = await api_for(users["operator"], "admin")
    assert (await api.call("delete", f"/tokens/{theirs.pk}"))[0] == 404
    await theirs.arefresh_from_db()
    assert theirs.revoked_at is None


async def test_an_account_changes_its_role_closes_and_opens(users: dict[str, User]) -> None:
    api = await api_for(users["admin"], "admin")
    status, changed = await api.call("put", "/users/reader", {"role": "operator", "is_open": False})
    assert (status, changed["role"], changed["is_open"], changed["sessions"]) == (200, "operator", False, [])
    same = {field: changed[field] for field in ("role", "is_open", "prefixes")}
    assert (await api.call("put", "/users/reader", same))[1] == changed, (
        "what comes out can go in, where it is asked for"
    )
    assert (await api.call("put", "/users/reader", changed))[0] == 422, "other fields would change nothing"
    status, changed = await api.call("put", "/users/READER", {"is_open": True})
    assert (status, changed["is_open"]) == (200, True)
    status, listed = await api.call("get", "/users?q=e")
    assert [user["name"] for user in listed["items"]] == ["operator", "reader"]
    status, told = await api.call("put", "/users/admin", {"role": "reader"})
    assert (status, told["detail"]) == (409, "This is your own account: another administrator has to do that.")
    assert (await api.call("get", "/users/somebody-else"))[0] == 404
    actions = [entry.action async for entry in AuditEntry.objects.order_by("number")]
    assert actions == ["role changed", "account closed", "account opened"]


async def test_a_closed_or_lowered_account_takes_its_tokens_along(users: dict[str, User]) -> None:
    api = await api_for(users["admin"], "admin")
    second = User(username="second", role="admin")
    await second.asave()
    theirs = await api_for(second, "admin")
    assert (await theirs.call("put", "/users/admin", {"is_open": False}))[0] == 200
    assert (await api.call("get", "/users"))[0] == 401, "who is closed may nothing"
    await User.objects.filter(username="admin").aupdate(is_active=True, role="operator")
    assert (await api.call("put", "/users/second", {"role": "reader"}))[0] == 403


async def test_sessions_are_seen_and_ended(log_in: Client) -> None:
    browser = await log_in("reader")
    api = await api_for(await User.objects.aget(username="admin"), "admin")
    _, seen = await api.call("get", "/users/reader")
    assert [set(one) for one in seen["sessions"]] == [{"id", "address", "started_at", "seen_at", "ends_at"}]
    assert await api.call("delete", "/users/reader/sessions?session=none-of-it") == (200, {"ended": 0})
    assert (await browser.get("/alerts")).status_code == 200
    assert await api.call("delete", f"/users/reader/sessions?session={seen['sessions'][0]['id']}") == (
        200,
        {"ended": 1},
    )
    assert (await browser.get("/alerts")).status_code == 302


async def test_an_invitation_is_made_seen_and_withdrawn(users: dict[str, User]) -> None:
    api = await api_for(users["admin"], "admin")
    status, made = await api.call("post", "/invitations", {"label": "Ada", "role": "operator"})
    address = urlsplit(made["link"])
    assert (status, address.path, len(parse_qs(address.query)["token"][0])) == (201, "/invitation", 43)
    assert (await AsyncClient().get(f"{address.path}?{address.query}")).status_code == 200
    _, listed = await api.call("get", "/invitations")
    assert [(row["label"], row["role"], row["created_by"]) for row in listed["items"]] == [("Ada", "operator", "admin")]
    link = made.pop("link")
    assert listed["items"] == [made] and link
    assert (await api.call("delete", f"/invitations/{listed['items'][0]['id']}"))[0] == 204
    assert (await api.call("delete", f"/invitations/{listed['items'][0]['id']}"))[0] == 404
    assert (await AsyncClient().get(f"{address.path}?{address.query}")).status_code != 200


async def test_a_person_changes_the_own_password_with_the_one_of_now(log_in: Client) -> None:
    await log_in("operator")
    user = await User.objects.aget(username="operator")
    api = await api_for(user, "admin")
    new = "another long way from 1234"
    status, told = await api.call("put", "/account/password", {"current": "not this one at all", "password": new})
    assert (status, told["fields"]) == (422, {"current": ["That is not your password."]})
    status, told = await api.call("put", "/account/password", {"current": PASSWORD, "password": "short"})
    assert status == 422 and "password" in told["fields"]
    assert await api.call("put", "/account/password", {"current": PASSWORD, "password": new}) == (200, {"ended": 1})
    assert await sync_to_async((await User.objects.aget(pk=user.pk)).check_password)(new)
    assert (await api.call("get", "/tokens"))[0] == 200  # tokens stay
    written = [one async for one in AuditEntry.objects.all()]
    assert [(one.action, one.way) for one in written] == [("password changed", "rest")]
    assert new not in str([one.__dict__ for one in written])
