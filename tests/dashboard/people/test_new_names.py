"""No new account gets a name that reads as another one's."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ValidationError
from django.test import AsyncClient

from dashboard.models.management import Role, User
from dashboard.people.invitations import invite
from dashboard.people.new_names import check_new_name
from dashboard.people.user_accounts import UserProblem, new_user
from tests.dashboard.conftest import PASSWORD, Client

GOOD = ["ada", "Ada.Lovelace+1@example.org", "jürgen", "Łukasz", "иван-2", "Ελένη", "王小明", "wang小明", "さくら花子",
        "カー", "佐々木", "김민준_kim", "محمد٣", "אבי"]  # fmt: skip
ALIKE = [
    "аdmin",  # Cyrillic a
    "admιn",  # Greek iota
    "ａｄｍｉｎ",  # full width
    "adm\u0131n\u0430",
    "ﬁnance",  # a ligature
    "𝐚𝐝𝐦𝐢𝐧",
    "admin²",
    "admin٣",
    "adminʼ",
    "ada王иван",
    "ｶﾀｶﾅ",
    "Кamera",
]


@pytest.mark.parametrize("name", GOOD)
def test_names_of_one_script_are_taken(name: str) -> None:
    check_new_name(name)


@pytest.mark.parametrize("name", ALIKE)
def test_s17_names_that_read_as_others_are_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        check_new_name(name)


@pytest.mark.parametrize("name", ALIKE)
@pytest.mark.django_db
def test_no_way_to_an_account_goes_around_it(name: str) -> None:
    with pytest.raises(UserProblem, match=r"look like others|different scripts|Letters, digits"):
        new_user(name, Role.READER)


async def test_who_is_invited_is_told_why(admin: User) -> None:
    _, secret = await sync_to_async(invite)(admin, Role.READER, "")
    wanted = {"username": "аdmin", "password": PASSWORD, "again": PASSWORD}
    response = await AsyncClient().post("/invitation", wanted | {"token": secret})
    assert "mixes letters of different scripts" in response.content.decode()
    assert not await User.objects.filter(username="аdmin").aexists()


async def test_a_name_of_before_goes_on_working(log_in: Client) -> None:
    await log_in("reader")
    await User.objects.filter(role="reader").aupdate(username="аdmin")
    user = await User.objects.aget(username="аdmin")
    user.set_password(PASSWORD)
    await user.asave()
    response = await AsyncClient().post("/login", {"username": "аdmin", "password": PASSWORD})
    assert response.status_code == 302
