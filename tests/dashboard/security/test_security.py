"""S65: planted weaknesses are found, each with something that can be done about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.cluster.gateway import Gateway
from dashboard.cluster.settings_table import broker_settings
from dashboard.models.alerts import AlertChannel
from dashboard.models.management import ApiToken, Invitation, Role, User
from dashboard.security import brokers, machine
from dashboard.security.machine import Machine
from tests.dashboard.conftest import Client, api_for

PRIVATE = Machine(is_root=False)


@pytest.fixture
def weak(tmp_path: Path) -> Iterator[ApplianceConfig]:
    """Settings with five weaknesses, and a data folder that others may read."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)  # whatever the umask is
    planted = replace(
        settings.APPLIANCE, data=folder, bind="0.0.0.0", allow_open_network=True, allowed_hosts="*",
        trusted_proxies="10.0.0.0/8", alarm_networks="0.0.0.0/0",
    )  # fmt: skip
    with override_settings(APPLIANCE=planted):
        yield planted


async def plant() -> None:
    """Six weaknesses in the database."""
    now = timezone.now()
    admin, reader = await User.objects.aget(role=Role.ADMIN), await User.objects.aget(role=Role.READER)
    await User.objects.filter(pk=admin.pk).aupdate(last_login=now)
    await User.objects.filter(pk=reader.pk).aupdate(last_login=now - timedelta(days=91))
    token = {"user": admin, "prefix": "gmq_", "expires_at": now + timedelta(days=300)}
    await ApiToken.objects.acreate(name="strong", token_hash="1", scope="admin", last_used_at=now, **token)
    await ApiToken.objects.acreate(name="idle", token_hash="2", last_used_at=now - timedelta(days=91), **token)
    await Invitation.objects.acreate(
        token_hash="3", role=Role.ADMIN, label="Eve", made_by=admin, expires_at=now + timedelta(days=1)
    )
    hook = {"url": "http://hooks.example/x", "secret": "s" * 16}
    await AlertChannel.objects.acreate(name="hook", kind="slack", settings=json.dumps(hook))
    mail = {"host": "mail.example", "security": "none", "sender": "a@b.example"}
    await AlertChannel.objects.acreate(name="mail", kind="mail", settings=json.dumps(mail))


async def test_s65_each_planted_weakness_is_found_and_ended(
    log_in: Client, gateway: Gateway, weak: ApplianceConfig
) -> None:
    client = await log_in("admin")
    await plant()
    api = await api_for(await User.objects.aget(role=Role.ADMIN), "admin")
    status, told = await api.call("get", "/security")
    assert (status, told["problems"]) == (200, [])
    found = {one["name"]: one for one in told["items"]}
    planted = {
        "open-network", "no-tls", "any-host", "proxies-wide", "alarms-wide", "folder-open", "topics-by-sending",
        "account-unused", "token-long", "token-unused", "invitation-admin", "hook-plain", "mail-plain",
    }  # fmt: skip
    assert planted <= set(found)
    levels = [one["level"] for one in told["items"]]
    assert levels == sorted(levels, reverse=True)
    page = (await client.get("/security")).content.decode()
    for code in planted:
        finding = found[code]
        assert finding["title"] in page and (finding["lines"] or finding["page"]), code
        if finding["page"]:
            assert f'href="{finding["page"]}"' in page
            assert (await client.get(finding["page"])).status_code == 200, finding["page"]


async def test_s65_an_account_that_is_used_is_no_finding(log_in: Client, gateway: Gateway) -> None:
    client = await log_in("admin")
    await User.objects.all().aupdate(last_login=timezone.now())
    page = (await client.get("/security")).content.decode()
    _, found, rest = page.partition('aria-label="Checks"')
    assert found and "token" not in rest.split("</section>")[0]
    assert "has not logged in" not in page


def test_s65_a_strict_appliance_has_no_finding(tmp_path: Path) -> None:
    strict = replace(
        ApplianceConfig(data=tmp_path), bind="0.0.0.0", accounts=True, tls_cert="/x.pem", tls_mode="enforcing",
        http_hsts_s=31536000, trusted_proxies="10.0.0.7", alarm_networks="10.0.0.9",
    )  # fmt: skip
    assert list(machine.checks(strict, PRIVATE)) == []
    assert [one.name for one in machine.checks(strict, Machine(is_root=True))] == ["root"]
    assert [one.name for one in machine.checks(replace(strict, tls_mode="permissive"), PRIVATE)] == ["tls-permissive"]
    assert [one.name for one in machine.checks(replace(strict, http_hsts_s=0), PRIVATE)] == ["no-hsts"]


def test_s65_a_wide_sign_in_is_found(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    secret.chmod(0o604)
    strict = ApplianceConfig(
        data=tmp_path, accounts=True, oidc_issuer="https://id.example", oidc_client_id="gantry", oidc_roles="a=admin",
        oidc_client_secret_file=str(secret), oidc_networks="10.0.0.0/8", oidc_others="reader",
    )  # fmt: skip
    found = [one.name for one in machine.checks(strict, PRIVATE)]
    assert found == ["sign-in-all", "sign-in-wide", "sign-in-secret"]
    secret.chmod(0o600)
    assert not list(machine.checks(replace(strict, oidc_networks="10.0.0.9", oidc_others="refuse"), PRIVATE))


def test_s65_a_broker_that_asks_for_no_account_is_found_where_the_appliance_wants_it(tmp_path: Path) -> None:
    told = broker_settings({"aclEnable": "false", "autoCreateTopicEnable": "false"})
    asking = ApplianceConfig(data=tmp_path, accounts=True)
    assert [one.name for one in brokers.checks("broker-a", told, asking)] == ["acl-off"]
    assert not list(brokers.checks("broker-a", told, ApplianceConfig(data=tmp_path)))


def test_s65_of_a_cluster_elsewhere_its_brokers_tell(tmp_path: Path) -> None:
    attached = ApplianceConfig(data=tmp_path, attach="10.0.0.7:9876")
    assert list(machine.checks(attached, PRIVATE)) == []
    told = broker_settings({"aclEnable": "false", "autoCreateTopicEnable": "true"})
    assert [one.name for one in brokers.checks("broker-a", told, attached)] == ["acl-off", "topics-by-sending"]
