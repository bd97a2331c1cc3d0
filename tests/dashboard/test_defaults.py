"""What a stranger would try first: names and passwords that others ship, and passwords that everybody takes."""

from __future__ import annotations

import dataclasses
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import identify_hasher
from django.test import AsyncClient
from django.utils import timezone

from appliance.acl.account_book import AccountBook
from appliance.acl.own_account import ACCESS_KEY, ensure_own_account
from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.roles import BrokerConfig, NamesrvConfig
from dashboard.access.tokens import create_token, find_token
from dashboard.models.management import ApiToken, User
from dashboard.people.first_run import issue_setup_token
from dashboard.settings import PASSWORD_HASHERS
from tests.dashboard.conftest import PASSWORD

ROOT = Path(__file__).parents[2]
NAMES = ("admin", "root", "guest", "rocketmq", "gantry")
SHIPPED_PASSWORDS = ("admin", "guest", "rocketmq", "1234567", "public", "gantry", "changeme", "default", "root", "")
COMMON_PASSWORDS = (
    "123456", "password", "12345678", "qwerty", "123456789", "12345", "1234", "111111", "dragon", "123123",
    "baseball", "abc123", "football", "monkey", "letmein", "shadow", "master", "666666", "qwertyuiop", "123321",
    "mustang", "1234567890", "michael", "654321", "superman", "1qaz2wsx", "7777777", "121212", "000000",
    "qazwsx",
)  # fmt: skip
SECRET_NAMES = re.compile(r"password|secret|token|credential", re.IGNORECASE)
# A name and a password of a demonstration side by side, as code or a settings file would have them.
DEMO_PAIR = re.compile(
    r"""["'=:\s](?:admin|root|guest|rocketmq)["']?\s*[:=,/]\s*["']?(?:admin|guest|root|password|1234\d*|rocketmq)["'\s]"""
)


def test_s02_a_fresh_database_lets_nobody_in(transactional_db: None) -> None:
    """S02: 200 pairs that scanners try, on a fresh appliance and beside an administrator of one's own."""
    assert (User.objects.count(), ApiToken.objects.count()) == (0, 0)
    pairs = [(name, password) for name in NAMES for password in (*SHIPPED_PASSWORDS, *COMMON_PASSWORDS)]
    assert len(pairs) == 200
    for round_ in range(2):
        assert [pair for pair in pairs if authenticate(username=pair[0], password=pair[1])] == [], round_
        if not round_:
            User.objects.create_user("admin", PASSWORD, "admin")
    assert authenticate(username="admin", password=PASSWORD) is not None


def test_s02_no_setting_has_a_secret_of_ours_as_its_default() -> None:
    fields = [field for kind in (ApplianceConfig, BrokerConfig, NamesrvConfig) for field in dataclasses.fields(kind)]
    secrets = {field.name: field.default for field in fields if SECRET_NAMES.search(field.name)}
    assert secrets
    assert {name: value for name, value in secrets.items() if value not in (None, "", False)} == {}


def test_s02_nothing_that_is_shipped_has_a_demonstrations_password() -> None:
    folders = ("gantrymq", "store", "appliance", "dashboard", "templates", "deploy")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    shown = [path for path in paths if path.suffix in {".py", ".html", ".js", ".yml", ".toml", ".xml", ".json", ""}]
    assert len(shown) > 250
    assert [str(path) for path in shown if DEMO_PAIR.search(path.read_text("utf-8", "replace"))] == []
    assert DEMO_PAIR.search("super=admin/admin ") and DEMO_PAIR.search('("guest", "guest")')


def test_s02_s04_fresh_accounts_of_clients_are_the_appliances_own_alone(tmp_path: Path) -> None:
    """S02, S04: its secret is random each time."""
    secrets = set()
    for name in ("one", "two"):
        secrets.add(ensure_own_account(tmp_path / name).secret_key)
        book = AccountBook(tmp_path / name)
        book.load()
        assert set(book.current.by_key) == {ACCESS_KEY}
    assert len(secrets) == 2 and all(len(secret) >= 40 for secret in secrets)


async def test_s18_a_password_is_kept_as_argon2_at_todays_cost(transactional_db: None, settings: Any) -> None:
    """S18: OWASP's least parameters for Argon2id."""
    settings.PASSWORD_HASHERS = PASSWORD_HASHERS  # and not the tests' own
    token = await sync_to_async(issue_setup_token)()
    fields = {"username": "ada", "password": PASSWORD, "again": PASSWORD, "token": token or ""}
    assert (await AsyncClient().post("/first-run", fields)).status_code == 302
    kept = (await User.objects.aget()).password
    decoded = identify_hasher(kept).decode(kept)
    assert decoded["algorithm"] == "argon2" and decoded["variety"] == "argon2id"
    assert decoded["memory_cost"] >= 19 * 1024 and decoded["time_cost"] >= 2
    assert PASSWORD not in kept


async def test_s18_a_token_is_kept_as_a_hash_has_a_scope_and_ends(users: dict[str, User]) -> None:
    """S18: that it is shown once, test_pages tells."""
    row, secret = await create_token(users["operator"], "ci", "read", 7)
    kept = await ApiToken.objects.filter(pk=row.pk).values().aget()
    assert secret not in repr(kept) and len(kept["token_hash"]) == 64 and kept["scope"] == "read"
    assert timedelta(days=6) < row.expires_at - timezone.now() <= timedelta(days=7)
    assert await find_token(secret) is not None
    await ApiToken.objects.filter(pk=row.pk).aupdate(expires_at=timezone.now())
    assert await find_token(secret) is None
