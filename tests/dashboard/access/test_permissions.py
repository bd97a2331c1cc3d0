"""Every door has a guard, and the guards hold."""

from __future__ import annotations

import pytest
from django.test import AsyncClient

from dashboard.access.permissions import ROLE_PERMISSIONS, SCOPE_PERMISSIONS, Permission, Principal
from dashboard.api.operations import api
from dashboard.cluster.gateway import Gateway
from dashboard.live.sockets import LiveSocket, may_subscribe
from dashboard.models.management import Role, User
from dashboard.rest.auth import Token
from dashboard.urls import websocket_urlpatterns
from tests.dashboard.addresses import OPEN, all_patterns, example_address
from tests.dashboard.conftest import Client


def test_s11_every_address_declares_a_permission() -> None:
    undeclared = [route for route, item in all_patterns() if not hasattr(item.callback, "permission")]
    assert undeclared == []


def test_only_these_addresses_are_open() -> None:
    named_open = {
        item.name
        for _, item in all_patterns()
        if item.callback.permission is Permission.OPEN and not getattr(item.callback, "checks_itself", False)
    }
    assert named_open == OPEN


def test_s11_every_rest_operation_checks_a_token() -> None:
    operations = [
        operation
        for _, router in api._routers
        for view in router.path_operations.values()
        for operation in view.operations
    ]
    assert len(operations) >= 6
    for operation in operations:
        assert operation.auth_callbacks, operation.operation_id
        assert all(isinstance(guard, Token) for guard in operation.auth_callbacks), operation.operation_id


def test_s11_the_only_socket_is_the_guarded_one() -> None:
    assert [pattern.callback.consumer_class for pattern in websocket_urlpatterns] == [LiveSocket]


async def test_s10_without_a_session_nothing_is_shown(gateway: Gateway, transactional_db: None) -> None:
    client = AsyncClient()
    for route, item in all_patterns():
        address = example_address(route)
        for method in ("get", "post", "put", "delete"):
            response = await getattr(client, method)(address)
            if item.name in OPEN:
                assert response.status_code in (200, 302, 403, 404, 405, 422), (method, address, response.status_code)
            else:
                assert response.status_code in (302, 401, 403, 405), (method, address, response.status_code)
            if response.status_code == 302 and item.name not in OPEN:
                assert response.headers["Location"].startswith("/login")


async def test_a_view_that_declares_nothing_is_closed_to_everybody(
    log_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashboard.overview import views as overview

    client = await log_in(Role.ADMIN)
    monkeypatch.delattr(overview.overview, "permission")
    assert (await client.get("/")).status_code == 403


# Written out on purpose: this is the table that the code must agree with.
ALLOWED = {
    ("get", "/"): {"reader", "operator", "admin"},
    ("get", "/overview/live"): {"reader", "operator", "admin"},
    ("get", "/topics"): {"reader", "operator", "admin"},
    ("get", "/topics/create"): {"operator", "admin"},
    ("post", "/topics/create"): {"operator", "admin"},
    ("get", "/topic/{topic}"): {"reader", "operator", "admin"},
    ("get", "/topic/{topic}/queues"): {"reader", "operator", "admin"},
    ("get", "/topic/{topic}/groups"): {"reader", "operator", "admin"},
    ("get", "/topic/{topic}/settings"): {"operator", "admin"},
    ("post", "/topic/{topic}/settings"): {"operator", "admin"},
    ("get", "/topic/{topic}/delete"): {"operator", "admin"},
    ("post", "/topic/{topic}/delete"): {"operator", "admin"},
    ("post", "/topic/{topic}/send"): {"operator", "admin"},
    ("get", "/topic/{topic}/messages/broker-a.0.0"): {"reader", "operator", "admin"},
    ("get", "/groups"): {"reader", "operator", "admin"},
    ("get", "/group/{group}"): {"reader", "operator", "admin"},
    ("get", "/group/{group}/reset"): {"operator", "admin"},
    ("post", "/group/{group}/reset"): {"operator", "admin"},
    ("get", "/broker/broker-a/settings"): {"admin"},
    ("post", "/broker/broker-a/settings"): {"admin"},
    ("get", "/tokens"): {"reader", "operator", "admin"},
    ("get", "/api/v1/docs"): {"reader", "operator", "admin"},
    ("get", "/api/v1/openapi.json"): {"reader", "operator", "admin"},
}


@pytest.mark.parametrize("role", ["reader", "operator", "admin"])
async def test_each_role_may_what_the_table_says(role: str, log_in: Client, make_topic, gateway: Gateway) -> None:  # type: ignore[no-untyped-def]
    topic = await make_topic(f"roles-{role}")
    client = await log_in(role)
    for (method, address), roles in ALLOWED.items():
        response = await getattr(client, method)(address.format(topic=topic, group="TOOLS_CONSUMER"))
        assert (response.status_code == 403) is (role not in roles), (method, address, response.status_code)


async def test_a_session_opens_no_rest_operation(log_in: Client, gateway: Gateway) -> None:
    client = await log_in(Role.ADMIN)
    assert (await client.get("/api/v1/topics")).status_code == 401


async def test_a_closed_account_is_out_at_once(log_in: Client, gateway: Gateway) -> None:
    client = await log_in(Role.READER)
    assert (await client.get("/topics")).status_code == 200
    await User.objects.filter(role=Role.READER).aupdate(is_active=False)
    assert (await client.get("/topics")).status_code == 302


async def test_s16_a_session_ends_at_its_absolute_age(log_in: Client, gateway: Gateway) -> None:
    client = await log_in(Role.READER)
    session = await client.asession()
    await session.aset("started_at", 1)
    await session.asave()
    assert (await client.get("/topics")).status_code == 302


async def test_a_fragment_without_session_is_sent_to_the_log_in() -> None:
    response = await AsyncClient().get("/overview/live", headers={"hx-request": "true"})
    assert (response.status_code, response.headers["HX-Redirect"]) == (401, "/login")


async def test_forms_need_their_token(log_in: Client, gateway: Gateway) -> None:
    client = await log_in(Role.ADMIN, enforce_csrf_checks=True)
    response = await client.post("/topics/create", {"name": "csrf-less", "queues": 1, "perm": "read-write"})
    assert response.status_code == 403
    assert "csrf-less" not in {row.name for row in (await gateway.topics.list()).rows}


def test_no_token_may_more_than_an_operator_but_for_the_one_made_for_settings() -> None:
    for scope, permissions in SCOPE_PERMISSIONS.items():
        beyond = permissions - ROLE_PERMISSIONS[Role.OPERATOR]
        config = {Permission.CONFIG_READ, Permission.CONFIG_WRITE}
        assert beyond == {"config": config, "admin": config | {Permission.USERS_WRITE}}.get(scope, set())
        assert bool(permissions & {Permission.USERS_WRITE, Permission.ACCOUNT}) is (scope == "admin")


def test_s14_a_subscription_needs_its_permission() -> None:
    nobody = Principal(User(), frozenset())
    reader = Principal(User(), ROLE_PERMISSIONS[Role.READER])
    for channel in ("overview", "waiting", "topic:orders"):
        assert not may_subscribe(nobody, channel)
        assert may_subscribe(reader, channel)
    for channel in ("", "topic:", "topics", "live.overview", "topic:" + "x" * 128):
        assert not may_subscribe(reader, channel)
