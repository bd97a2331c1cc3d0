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
from tests.dashboard.addresses import OPEN, all_patterns
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


async def test_a_view_that_declares_nothing_is_closed_to_all(log_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.overview import views as overview

    client = await log_in(Role.ADMIN)
    monkeypatch.delattr(overview.overview, "permission")
    assert (await client.get("/")).status_code == 403


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
