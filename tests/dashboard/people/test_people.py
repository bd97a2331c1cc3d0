"""People: an administrator invites, changes roles, ends sessions, closes accounts; others may not, and none locks
itself out.
"""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import pytest
from django.test import AsyncClient
from django.utils import timezone

from dashboard.models.audit import AuditEntry
from dashboard.models.management import ApiToken, Invitation, Role, User
from dashboard.people import invitations
from tests.dashboard.conftest import PASSWORD, Client, api_for

ACCOUNT = {"password": "a long way from 5678", "again": "a long way from 5678"}


async def invited(client: AsyncClient, role: str = "operator") -> str:
    """The secret of a new invitation, from the link that the page shows once."""
    made = await client.post("/users", {"label": "Ada", "role": role})
    assert made.status_code == 302
    page = (await client.get(made.headers["Location"])).content.decode()
    [secret] = set(re.findall(r"http://testserver/invitation\?token=([\w-]+)", page))
    assert secret not in (await client.get(made.headers["Location"])).content.decode(), "shown once"
    return secret


async def test_an_invitation_makes_one_account_of_its_role(log_in: Client) -> None:
    secret = await invited(await log_in("admin"))
    guest = AsyncClient()
    assert (await guest.get(f"/invitation?token={secret}")).status_code == 200
    taken = await guest.post("/invitation", ACCOUNT | {"token": secret, "username": "READER"})
    assert taken.status_code == 422 and b"already" in taken.content
    answer = await guest.post("/invitation", ACCOUNT | {"token": secret, "username": "ada"})
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert (await guest.get("/topics/create")).status_code == 200, "logged in, as operator"
    assert (await AsyncClient().get(f"/invitation?token={secret}")).status_code == 403
    entries = [(one.who, one.action, one.target) async for one in AuditEntry.objects.order_by("number")]
    assert entries == [("admin", "user invited", "Ada"), ("ada", "invitation accepted", "ada")]
    assert secret not in str([one.details async for one in AuditEntry.objects.all()])


async def test_many_invitations_have_one_example_for_a_shell(log_in: Client) -> None:
    admin = await log_in("admin")
    before = (await admin.get("/users")).content.decode().count('class="commands"')
    for label in ("Ada", "Bob", "Eve"):
        await admin.post("/users", {"label": label, "role": "reader"})
    page = (await admin.get("/users")).content.decode()
    assert all(label in page for label in ("Ada", "Bob", "Eve")) and page.count('class="commands"') == before + 1


async def test_of_many_who_use_one_link_one_gets_an_account(log_in: Client) -> None:
    secret = await invited(await log_in("admin"))
    before = await User.objects.acount()
    await asyncio.gather(
        *(AsyncClient().post("/invitation", ACCOUNT | {"token": secret, "username": f"ada{n}"}) for n in range(4))
    )
    assert await User.objects.acount() == before + 1


@pytest.mark.parametrize("how", ["withdrawn", "expired", "its maker closed", "its maker no administrator"])
async def test_a_link_that_ended_opens_nothing(log_in: Client, how: str) -> None:
    admin = await log_in("admin")
    secret = await invited(admin)
    invitation = await Invitation.objects.aget()
    if how == "withdrawn":
        await admin.post(f"/users/invitations/{invitation.pk}/withdraw")
    elif how == "expired":
        await Invitation.objects.aupdate(expires_at=timezone.now() - timedelta(seconds=1))
    elif how == "its maker closed":
        await User.objects.filter(username="admin").aupdate(is_active=False)
    else:
        await User.objects.filter(username="admin").aupdate(role=Role.READER)
    for token in (secret, "", "guess"):
        assert (await AsyncClient().get(f"/invitation?token={token}")).status_code == 403
        answer = await AsyncClient().post("/invitation", ACCOUNT | {"token": token, "username": "eve"})
        assert answer.status_code == 403
    assert not await User.objects.filter(username="eve").aexists()


async def test_only_so_many_are_open(log_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invitations, "OPEN_MAX", 1)
    admin = await log_in("admin")
    await invited(admin)
    refused = await admin.post("/users", {"label": "Bob", "role": "reader"})
    assert refused.status_code == 422 and b"Withdraw one first" in refused.content


async def test_an_administrator_changes_an_account_at_once(log_in: Client) -> None:
    admin, operator = await log_in("admin"), await log_in("operator")
    user = await User.objects.aget(username="operator")
    api = await api_for(user)
    address = f"/users/{user.pk}"
    page = (await admin.get(address)).content.decode()
    assert "operator" in page and "send and resend messages" in page
    assert "alarms.write" not in page, "pages say alerts, and in words"

    await admin.post(address, {"do": "role", "role": "reader"})
    assert (await operator.get("/topics/create")).status_code == 403
    await admin.post(address, {"do": "role", "role": "operator"})

    token = await ApiToken.objects.aget(user=user)
    await admin.post(address, {"do": "revoke-token", "token": str(token.pk)})
    assert (await api.call("get", "/alerts"))[0] == 401

    await admin.post(address, {"do": "end-session", "session": ""})
    assert (await operator.get("/alerts")).status_code == 302, "asked to log in"

    await admin.post(address, {"do": "close"})
    refused = await AsyncClient().post("/login", {"username": "operator", "password": PASSWORD})
    assert refused.status_code == 422
    await admin.post(address, {"do": "open"})
    assert (await AsyncClient().post("/login", {"username": "operator", "password": PASSWORD})).status_code == 302
    actions = [one.action async for one in AuditEntry.objects.filter(who="admin").order_by("number")]
    assert actions == [
        "role changed", "role changed", "token revoked", "sessions ended", "account closed", "account opened",
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [{"do": "role", "role": "reader"}, {"do": "close"}, {"do": "no such"}, {}])
async def test_what_would_lock_an_administrator_out_is_refused(log_in: Client, fields: dict[str, str]) -> None:
    admin = await log_in("admin")
    user = await User.objects.aget(username="admin")
    assert (await admin.post(f"/users/{user.pk}", fields)).status_code == 422
    await user.arefresh_from_db()
    assert (user.role, user.is_active) == (Role.ADMIN, True)


async def test_unknown_roles_accounts_and_tokens_are_told(log_in: Client) -> None:
    admin = await log_in("admin")
    reader = await User.objects.aget(username="reader")
    for fields in ({"do": "role", "role": "king"}, {"do": "revoke-token", "token": "1 OR 1"}):
        assert (await admin.post(f"/users/{reader.pk}", fields)).status_code == 422
    assert (await admin.get("/users/999999")).status_code == 404
    assert (await admin.post("/users", {"label": "", "role": "king"})).status_code == 422
