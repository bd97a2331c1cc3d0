"""S12: every address and every REST operation, for nobody and for each role and token, against a written table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import AsyncClient

from dashboard.api.operations import api
from dashboard.cluster.gateway import Gateway
from dashboard.models.management import User
from tests.dashboard.addresses import METHODS, guarded_patterns, rest_operations
from tests.dashboard.conftest import Client, api_for

READERS, OPERATORS, ADMINS = {"reader", "operator", "admin"}, {"operator", "admin"}, {"admin"}
SECRET = re.compile(r"secret|password|token|access_?key|credential", re.IGNORECASE)

# Written out on purpose: this is the table that the code must agree with. By the address's name; any method.
PAGES = {
    "overview": READERS,
    "overview-live": READERS,
    "brokers": READERS,
    "topics": READERS,
    "topics-export": READERS,
    "topic-create": OPERATORS,
    "topics-change": OPERATORS,
    "topic-changes": OPERATORS,
    "topic-changes-stop": OPERATORS,
    "topic": READERS,
    "message": READERS,
    "message-of-id": READERS,
    "topic-message": READERS,
    "topic-message-body": READERS,
    "topic-message-again": OPERATORS,
    "topic-search": READERS,
    "topic-export": READERS,
    "topic-search-save": READERS,
    "topic-search-delete": READERS,
    "topic-send": OPERATORS,
    "topic-queues": READERS,
    "topic-groups": READERS,
    "topic-charts": READERS,
    "topic-producers": READERS,
    "topic-settings": OPERATORS,
    "topic-delete": OPERATORS,
    "groups": READERS,
    "group": READERS,
    "group-stacks": READERS,
    "group-reset": OPERATORS,
    "group-consuming": OPERATORS,
    "group-mode": OPERATORS,
    "group-delete": OPERATORS,
    "connect": READERS,
    "connect-send": OPERATORS,
    "clients": READERS,
    "client-disconnect": OPERATORS,
    "traces": READERS,
    "traces-further": READERS,
    "trace": READERS,
    "dead-letters": READERS,
    "dead-letters-group": READERS,
    "dead-letters-resend": OPERATORS,
    "resend-runs": READERS,
    "resend-start": OPERATORS,
    "resend-do": OPERATORS,
    "dead-letters-discard": OPERATORS,
    "alerts": READERS,
    "alert": READERS,
    "alert-do": OPERATORS,
    "alert-deliveries": READERS,
    "alert-rule-new": OPERATORS,
    "alert-rule": OPERATORS,
    "alert-rule-do": OPERATORS,
    "alert-would-have": READERS,
    "alert-mute": OPERATORS,
    "alert-mute-end": OPERATORS,
    "alert-channel-new": ADMINS,
    "alert-channel": ADMINS,
    "alert-channel-test": ADMINS,
    "alert-channel-delete": ADMINS,
    "audit": OPERATORS,
    "audit-export": OPERATORS,
    "index": READERS,  # of the reports
    "run": OPERATORS,
    "schedule": OPERATORS,
    "promises": OPERATORS,
    "weekly": OPERATORS,
    "send-weekly": OPERATORS,
    "runs": READERS,
    "detail": READERS,
    "stop": OPERATORS,
    "again": OPERATORS,
    "download": READERS,
    "broker": READERS,
    "broker-config": ADMINS,
    "broker-succession": ADMINS,
    "broker-drain": ADMINS,
    "broker-drain-start": ADMINS,
    "broker-drain-undo": ADMINS,
    "broker-failover-pause": ADMINS,
    "broker-failover-resume": ADMINS,
    "broker-settlement": ADMINS,
    "settings": ADMINS,
    "accounts": ADMINS,
    "definitions": ADMINS,
    "definitions-export": ADMINS,
    "name-server-entries": ADMINS,
    "name-server-entry": ADMINS,
    "find": READERS,
    "security": ADMINS,
    "people": ADMINS,
    "person": ADMINS,
    "invitation-withdraw": ADMINS,
    "logout": READERS,
    "times": READERS,
    "password": READERS,
    "tokens": READERS,
    "token-revoke": READERS,
    "metrics": READERS,
    "api-openapi": READERS,
    "api-docs": READERS,
    "docs": READERS,
    "docs-page": READERS,
}

# What a token needs: its scope, and the role of its account.
READ, WRITE, CONFIG = {"read", "write", "config", "admin"}, {"write", "config", "admin"}, {"config", "admin"}
PEOPLE = {"admin"}
REST = {
    ("get", "/latency"): (READ, READERS),
    ("get", "/topics"): (READ, READERS),
    ("post", "/topics"): (WRITE, OPERATORS),
    ("get", "/topic-changes"): (WRITE, OPERATORS),
    ("post", "/topic-changes"): (WRITE, OPERATORS),
    ("get", "/topic-changes/1000000"): (WRITE, OPERATORS),
    ("post", "/topic-changes/1000000/stop"): (WRITE, OPERATORS),
    ("get", "/topics/no-such"): (READ, READERS),
    ("get", "/topics/no-such/figures"): (READ, READERS),
    ("put", "/topics/no-such"): (WRITE, OPERATORS),
    ("delete", "/topics/no-such"): (WRITE, OPERATORS),
    ("get", "/traces"): (READ, READERS),
    ("get", "/topics/no-such/messages"): (READ, READERS),
    ("post", "/topics/no-such/messages"): (WRITE, OPERATORS),
    ("get", "/topics/no-such/searches"): (READ, READERS),
    ("post", "/topics/no-such/searches"): (WRITE, READERS),
    ("delete", "/topics/no-such/searches/1000000"): (WRITE, READERS),
    ("get", "/messages/no-such"): (READ, READERS),
    ("get", "/topics/no-such/messages/broker-a.0.0"): (READ, READERS),
    ("get", "/topics/no-such/messages.csv"): (READ, READERS),
    ("get", "/topics/no-such/messages/broker-a.0.0/groups"): (READ, READERS),
    ("get", "/topics/no-such/messages/broker-a.0.0/trace"): (READ, READERS),
    ("post", "/topics/no-such/messages/broker-a.0.0/resend"): (WRITE, OPERATORS),
    ("post", "/topics/no-such/messages/broker-a.0.0/deliver"): (WRITE, OPERATORS),
    ("get", "/groups"): (READ, READERS),
    ("get", "/groups/no-such"): (READ, READERS),
    ("get", "/groups/no-such/leases"): (READ, READERS),
    ("get", "/groups/no-such/stacks"): (READ, READERS),
    ("post", "/groups/no-such/reset"): (WRITE, OPERATORS),
    ("get", "/brokers/no-such/drain"): (CONFIG, ADMINS),
    ("post", "/brokers/no-such/drain"): (CONFIG, ADMINS),
    ("delete", "/brokers/no-such/drain"): (CONFIG, ADMINS),
    ("get", "/brokers/no-such/failover"): (READ, READERS),
    ("post", "/brokers/no-such/failover/pause"): (CONFIG, ADMINS),
    ("post", "/brokers/no-such/failover/resume"): (CONFIG, ADMINS),
    ("get", "/brokers/no-such/settings"): (CONFIG, ADMINS),
    ("put", "/brokers/no-such/settings"): (CONFIG, ADMINS),
    ("get", "/connect"): (READ, READERS),
    ("get", "/clients"): (READ, READERS),
    ("post", "/clients/disconnect"): (WRITE, OPERATORS),
    ("get", "/dead-letters"): (READ, READERS),
    ("get", "/dead-letters/no-such/causes"): (READ, READERS),
    ("post", "/dead-letters/no-such/resend"): (WRITE, OPERATORS),
    ("get", "/dead-letters/no-such/results"): (READ, READERS),
    ("delete", "/dead-letters/no-such"): (WRITE, OPERATORS),
    ("get", "/dead-letters/no-such/runs"): (READ, READERS),
    ("post", "/dead-letters/no-such/runs"): (WRITE, OPERATORS),
    ("get", "/dead-letters/no-such/runs/1000000"): (READ, READERS),
    ("post", "/dead-letters/no-such/runs/1000000/stop"): (WRITE, OPERATORS),
    ("post", "/dead-letters/no-such/runs/1000000/resume"): (WRITE, OPERATORS),
    ("get", "/history"): (READ, READERS),
    ("get", "/alerts"): (READ, READERS),
    ("get", "/alerts/1000000"): (READ, READERS),
    ("put", "/alerts/1000000/acknowledged"): (WRITE, OPERATORS),
    ("put", "/alerts/1000000/assignee"): (WRITE, OPERATORS),
    ("post", "/alerts/1000000/notes"): (WRITE, OPERATORS),
    ("get", "/alerts/rules"): (READ, READERS),
    ("post", "/alerts/rules"): (WRITE, OPERATORS),
    ("put", "/alerts/rules/1000000"): (WRITE, OPERATORS),
    ("delete", "/alerts/rules/1000000"): (WRITE, OPERATORS),
    ("get", "/alerts/rules/1000000/preview"): (READ, READERS),
    ("get", "/alerts/channels"): (CONFIG, ADMINS),
    ("post", "/alerts/channels"): (CONFIG, ADMINS),
    ("put", "/alerts/channels/1000000"): (CONFIG, ADMINS),
    ("delete", "/alerts/channels/1000000"): (CONFIG, ADMINS),
    ("post", "/alerts/channels/1000000/test"): (CONFIG, ADMINS),
    ("get", "/alerts/mutes"): (READ, READERS),
    ("post", "/alerts/mutes"): (WRITE, OPERATORS),
    ("delete", "/alerts/mutes/1000000"): (WRITE, OPERATORS),
    ("get", "/alerts/deliveries"): (READ, READERS),
    ("get", "/audit"): (WRITE, OPERATORS),
    ("get", "/audit/chain"): (WRITE, OPERATORS),
    ("get", "/cluster"): (READ, READERS),
    ("get", "/definitions"): (CONFIG, ADMINS),
    ("post", "/definitions"): (CONFIG, ADMINS),
    ("get", "/cluster/kv"): (CONFIG, ADMINS),
    ("put", "/cluster/kv"): (CONFIG, ADMINS),
    ("delete", "/cluster/kv"): (CONFIG, ADMINS),
    ("get", "/live"): (READ, READERS),
    ("put", "/groups/no-such/consuming"): (WRITE, OPERATORS),
    ("put", "/groups/no-such/mode"): (WRITE, OPERATORS),
    ("delete", "/groups/no-such"): (WRITE, OPERATORS),
    ("get", "/machine"): (READ, READERS),
    ("get", "/brokers"): (READ, READERS),
    ("get", "/brokers/no-such"): (READ, READERS),
    ("get", "/reports"): (READ, READERS),
    ("get", "/reports/runs"): (READ, READERS),
    ("post", "/reports/runs"): (WRITE, OPERATORS),
    ("get", "/reports/runs/1000000"): (READ, READERS),
    ("get", "/reports/runs/1000000/result"): (READ, READERS),
    ("get", "/reports/runs/1000000/result.csv"): (READ, READERS),
    ("post", "/reports/runs/1000000/stop"): (WRITE, OPERATORS),
    ("get", "/reports/runs/1000000/log"): (READ, READERS),
    ("get", "/reports/promises"): (READ, READERS),
    ("put", "/reports/promises"): (WRITE, OPERATORS),
    ("get", "/reports/weekly"): (READ, READERS),
    ("put", "/reports/weekly"): (WRITE, OPERATORS),
    ("post", "/reports/weekly/send"): (WRITE, OPERATORS),
    ("get", "/reports/schedule"): (READ, READERS),
    ("put", "/reports/schedule"): (WRITE, OPERATORS),
    ("get", "/tokens"): (PEOPLE, READERS),
    ("post", "/tokens"): (PEOPLE, READERS),
    ("delete", "/tokens/1000000"): (PEOPLE, READERS),
    ("get", "/security"): (PEOPLE, ADMINS),
    ("put", "/account/password"): (PEOPLE, READERS),
    ("get", "/audit/export.csv"): (WRITE, OPERATORS),
    ("get", "/brokers/no-such/master"): (CONFIG, ADMINS),
    ("post", "/brokers/no-such/master"): (CONFIG, ADMINS),
    ("get", "/brokers/no-such/settlement"): (CONFIG, ADMINS),
    ("post", "/brokers/no-such/settlement"): (CONFIG, ADMINS),
    ("get", "/users"): (PEOPLE, ADMINS),
    ("get", "/users/no-such"): (PEOPLE, ADMINS),
    ("put", "/users/no-such"): (PEOPLE, ADMINS),
    ("delete", "/users/no-such/sessions"): (PEOPLE, ADMINS),
    ("delete", "/users/no-such/tokens/1000000"): (PEOPLE, ADMINS),
    ("get", "/invitations"): (PEOPLE, ADMINS),
    ("post", "/invitations"): (PEOPLE, ADMINS),
    ("delete", "/invitations/1000000"): (PEOPLE, ADMINS),
}


def is_closed(response: HttpResponse) -> bool:
    """Whether the guard kept somebody out."""
    to_log_in = response.status_code == 302 and response.headers["Location"].startswith("/login")
    return response.status_code in (401, 403) or to_log_in


def test_s12_the_tables_have_every_address_and_every_operation() -> None:
    assert set(guarded_patterns()) == set(PAGES)
    assert rest_operations() == set(REST)
    assert [operation for operation, (scopes, _) in REST.items() if operation[0] != "get" and "read" in scopes] == []


@pytest.mark.parametrize("role", ["nobody", "reader", "operator", "admin"])
async def test_s12_pages_open_to_whom_the_table_names(role: str, log_in: Client, gateway: Gateway) -> None:
    for name, address in guarded_patterns().items():
        client = AsyncClient() if role == "nobody" else await log_in(role)
        for method in METHODS:
            response = await getattr(client, method)(address)
            # Logging out by POST ends the session: what comes after it is nobody's.
            may = role in PAGES[name] and not (name == "logout" and method in ("put", "patch", "delete"))
            if name == "logout" and method == "post" and may:
                assert response.status_code == 302
                continue
            assert is_closed(response) is not may, (role, method, address, response.status_code)


@pytest.mark.parametrize("scope", ["read", "write", "config", "admin"])
async def test_s12_tokens_open_what_their_scope_and_their_account_both_allow(
    scope: str, users: dict[str, User], gateway: Gateway
) -> None:
    for role, user in users.items():
        client = await api_for(user, scope)
        for (method, address), (scopes, roles) in REST.items():
            body: Any = None if method in ("get", "delete") else {}
            status, _ = await client.call(method, address, body)
            may = scope in scopes and role in roles
            assert (status in (401, 403)) is not may, (scope, role, method, address, status)


@pytest.mark.parametrize("secret", ["", "gmq_", "gmq_" + "x" * 43, "gmq_\xe4"])
async def test_s12_no_token_and_made_up_ones_open_nothing(
    secret: str, users: dict[str, User], gateway: Gateway
) -> None:
    client = AsyncClient()
    for method, address in REST:
        response = await getattr(client, method)("/api/v1" + address, headers={"authorization": f"Bearer {secret}"})
        assert response.status_code == 401, (method, address, response.status_code)


def test_s25_no_answer_has_a_field_for_a_secret() -> None:
    """S25: REST has no way to give one out, whatever the role."""
    shown = set(answer_fields(api.get_openapi_schema(path_prefix="/api/v1/")))
    assert {"stored_messages", "write_queues"} <= shown
    assert {name for name in shown if SECRET.search(name)} == set()


def answer_fields(document: Any) -> Iterator[str]:
    """Every property's name in what the document says of answers."""
    seen: set[str] = set()

    def walk(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            name = str(schema.get("$ref", "")).rpartition("/")[2]
            if name and name not in seen:
                seen.add(name)
                yield from walk(document["components"]["schemas"][name])
            yield from schema.get("properties", {})
        for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
            yield from walk(value)

    for methods in document["paths"].values():
        for operation in methods.values():
            yield from walk(operation["responses"])
