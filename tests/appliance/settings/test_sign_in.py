"""What the settings of a sign-in with a provider may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from appliance.settings.sign_in import RoleRule, client_secret, is_loopback_name, role_rules
from gantrymq.errors import ConfigError

GIVEN = {"oidc_issuer": "https://id.example/realms/x", "oidc_client_id": "gantry", "oidc_roles": "a=admin"}


def test_rules_are_values_roles_and_prefixes() -> None:
    assert role_rules(" admins = admin ;ops=operator:pay- orders- pay-; cn=x,dc=y=reader;") == (
        RoleRule("admins", "admin"),
        RoleRule("ops", "operator", ("orders-", "pay-")),
        RoleRule("cn=x,dc=y", "reader"),
    )
    assert role_rules("") == ()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"oidc_issuer": "http://id.example"}, "https"),
        ({"oidc_issuer": "ftp://id.example"}, "https"),
        ({"oidc_issuer": "id.example"}, "https"),
        ({"oidc_issuer": "https://"}, "https"),
        ({"oidc_issuer": "https://id.example?x=1"}, "without query"),
        ({"oidc_issuer": "https://ada:pw@id.example"}, "without query"),
        ({"oidc_issuer": "https://id.example:port"}, "not a URL"),
        ({"oidc_issuer": ""}, "name it with oidc_issuer"),
        ({"oidc_client_id": ""}, "oidc_client_id"),
        ({"oidc_scope": "profile"}, "openid must be"),
        ({"oidc_others": "admin"}, "refuse or reader"),
        ({"oidc_user_claim": ""}, "oidc_user_claim"),
        ({"oidc_roles": ""}, "no person could sign in"),
        ({"oidc_roles": "a"}, "not a rule"),
        ({"oidc_roles": "=admin"}, "not a rule"),
        ({"oidc_roles": "a=root"}, "no role 'root'"),
        ({"oidc_roles": "a=admin:x-"}, "sees everything"),
        ({"oidc_roles": "a=reader:x*"}, "cannot begin a name"),
        ({"oidc_networks": "10.0.0.0/33"}, "oidc_networks"),
    ],
)
def test_what_can_not_work_is_refused_with_the_reason(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ApplianceConfig(**(GIVEN | changed))


def test_a_provider_on_this_machine_needs_no_tls() -> None:
    for issuer in ("http://127.0.0.1:5556/dex", "http://localhost:8081", "http://[::1]:1"):
        assert ApplianceConfig(**(GIVEN | {"oidc_issuer": issuer})).oidc_issuer == issuer
    assert not is_loopback_name("localhost.example") and not is_loopback_name("10.0.0.1")


def test_s04_the_secret_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("canary-of-a-file\n")
    environment = {"GANTRY_OIDC_CLIENT_SECRET": "canary-of-a-variable"}
    plain = ApplianceConfig.load(GIVEN, environment, working_folder=tmp_path)
    assert client_secret(plain, environment) == "canary-of-a-variable"
    named = ApplianceConfig.load(GIVEN | {"oidc_client_secret_file": str(file)}, environment, working_folder=tmp_path)
    assert client_secret(named, environment) == "canary-of-a-file"
    assert "canary" not in repr(named) + repr(plain) + str(named.to_environment()) + str(plain.to_environment())
    file.unlink()
    with pytest.raises(ConfigError, match="oidc_client_secret_file"):
        client_secret(named, environment)
    assert client_secret(plain, {}) == ""
