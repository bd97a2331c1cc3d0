"""Which role and which names a person's groups come to."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from dashboard.sign_in.claims import claim_at, person_of, values_of
from dashboard.sign_in.errors import Refused

RULES = "root=admin; ops=operator; orders=operator:orders- pay-; pay=operator:pay-; all=reader; cn=x,dc=y=reader:x-"


def config(**changed: Any) -> ApplianceConfig:
    given = {"oidc_issuer": "https://id.example", "oidc_client_id": "gantry", "oidc_roles": RULES}
    return ApplianceConfig(**(given | changed))


@pytest.mark.parametrize(
    ("groups", "role", "prefixes"),
    [
        (["root"], "admin", ()),
        (["all", "root", "orders"], "admin", ()),
        ("ops", "operator", ()),
        (["orders"], "operator", ("orders-", "pay-")),
        (["pay", "orders"], "operator", ("orders-", "pay-")),
        (["pay", "ops"], "operator", ()),
        (["pay", "all"], "operator", ("pay-",)),  # the reader of all does not widen the operator of some
        (["cn=x,dc=y"], "reader", ("x-",)),
        ([7, None, {"ops": 1}, "all"], "reader", ()),
    ],
)
def test_the_highest_role_counts_and_its_names_alone(groups: Any, role: str, prefixes: tuple[str, ...]) -> None:
    person = person_of({"sub": "1", "preferred_username": "grace", "groups": groups}, config())
    assert (person.role, person.prefixes) == (role, prefixes)


@pytest.mark.parametrize("groups", [None, [], ["others"], ["ROOT"], {"root": True}, 7, "root,ops"])
def test_without_a_role_a_person_is_refused_or_reads_where_a_setting_says_so(groups: Any) -> None:
    claims = {"sub": "1", "preferred_username": "grace", "groups": groups}
    with pytest.raises(Refused, match="no role") as told:
        person_of(claims, config())
    assert (told.value.name, told.value.subject) == ("grace", "1")
    assert person_of(claims, config(oidc_others="reader")).role == "reader"


@pytest.mark.parametrize("name", [None, "", 7, ["grace"]])
def test_a_person_without_a_name_is_refused(name: Any) -> None:
    with pytest.raises(Refused, match="preferred_username"):
        person_of({"sub": "1", "preferred_username": name, "groups": ["root"]}, config())


def test_claims_are_found_by_name_and_inside_objects() -> None:
    claims = {"realm_access": {"roles": ["ops"]}, "https://example.com/roles": ["all"], "a.b": 1, "a": {"b": 2}}
    assert claim_at(claims, "realm_access.roles") == ["ops"]
    assert claim_at(claims, "https://example.com/roles") == ["all"]
    assert claim_at(claims, "a.b") == 1
    assert claim_at(claims, "realm_access.none") is None and claim_at(claims, "a.b.c") is None
    assert values_of(["a", "b", 3]) == {"a", "b"} and values_of("a") == {"a"} and values_of(None) == set()
