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

ROLES = {"readers": {"reader", "operator", "admin"}, "operators": {"operator", "admin"}, "admins": {"admin"}}
# What a token needs beside the role of its account.
SCOPES = {
    "read": {"read", "write", "config", "admin"},
    "write": {"write", "config", "admin"},
    "config": {"config", "admin"},
    "admin": {"admin"},
}
SECRET = re.compile(r"secret|password|token|access_?key|credential", re.IGNORECASE)


def names_of(table: str) -> Iterator[tuple[str, list[str]]]:
    """Each name of a table, with the words before the colon."""
    for before, _, names in (line.partition(":") for line in table.strip().splitlines()):
        yield from ((name, before.split()) for name in names.split())


# Written out on purpose: these are the tables that the code must agree with. Addresses by their names; any method.
PAGES_OF = """
readers: overview overview-live
readers: brokers broker
readers: topics topics-export topic topic-message topic-message-body topic-search topic-export
readers: topic-search-save topic-search-delete topic-queues topic-groups topic-charts topic-producers
readers: message message-of-id
readers: groups group group-stacks
readers: traces traces-further trace
readers: dead-letters dead-letters-group
readers: alerts alert alert-deliveries alert-would-have
readers: tokens token-revoke
readers: api-openapi api-docs
readers: docs docs-page moved-people moved-person moved-config moved-succession
readers: connect clients resend-runs index runs detail download find logout times password metrics
operators: topic-create topics-change topic-changes topic-changes-stop topic-message-again topic-send
operators: topic-settings topic-delete
operators: group-reset group-consuming group-mode group-delete
operators: dead-letters-resend dead-letters-discard
operators: resend-start resend-do
operators: alert-do alert-rule-new alert-rule alert-rule-do alert-mute alert-mute-end
operators: audit audit-export
operators: connect-send client-disconnect run schedule promises weekly send-weekly stop again
admins: alert-channel-new alert-channel alert-channel-test alert-channel-delete
admins: broker-config broker-succession broker-drain broker-drain-start broker-drain-undo
admins: broker-failover-pause broker-failover-resume broker-settlement
admins: definitions definitions-export
admins: name-server-entries name-server-entry
admins: settings accounts security people person invitation-withdraw
"""

# method, scope and role: addresses
REST_OF = """
get read readers: /latency
get read readers: /topics /topics/no-such /topics/no-such/figures /topics/no-such/messages
get read readers: /topics/no-such/searches /topics/no-such/messages/broker-a.0.0 /topics/no-such/messages.csv
get read readers: /topics/no-such/messages/broker-a.0.0/groups /topics/no-such/messages/broker-a.0.0/trace
post write operators: /topics /topics/no-such/messages /topics/no-such/messages/broker-a.0.0/resend
post write operators: /topics/no-such/messages/broker-a.0.0/deliver
put write operators: /topics/no-such
delete write operators: /topics/no-such
post write readers: /topics/no-such/searches
delete write readers: /topics/no-such/searches/1000000
get write operators: /topic-changes /topic-changes/1000000
post write operators: /topic-changes /topic-changes/preview /topic-changes/1000000/stop
get read readers: /traces
get read readers: /messages/no-such
get read readers: /groups /groups/no-such /groups/no-such/leases /groups/no-such/stacks
post write operators: /groups/no-such/reset
put write operators: /groups/no-such/consuming /groups/no-such/mode
delete write operators: /groups/no-such
get config admins: /brokers/no-such/drain /brokers/no-such/settings /brokers/no-such/master
get config admins: /brokers/no-such/settlement
post config admins: /brokers/no-such/drain /brokers/no-such/failover/pause /brokers/no-such/failover/resume
post config admins: /brokers/no-such/master /brokers/no-such/settlement
delete config admins: /brokers/no-such/drain
get read readers: /brokers/no-such/failover /brokers /brokers/no-such
put config admins: /brokers/no-such/settings
get read readers: /connect
get read readers: /clients
post write operators: /clients/disconnect
get read readers: /dead-letters /dead-letters/no-such/causes /dead-letters/no-such/results
get read readers: /dead-letters/no-such/runs /dead-letters/no-such/runs/1000000
post write operators: /dead-letters/no-such/resend /dead-letters/no-such/runs
post write operators: /dead-letters/no-such/runs/1000000/stop /dead-letters/no-such/runs/1000000/resume
delete write operators: /dead-letters/no-such
get read readers: /history
get read readers: /alerts /alerts/1000000 /alerts/rules /alerts/rules/1000000/preview /alerts/mutes
get read readers: /alerts/deliveries
put write operators: /alerts/1000000/acknowledged /alerts/1000000/assignee /alerts/rules/1000000
post write operators: /alerts/1000000/notes /alerts/rules /alerts/mutes
delete write operators: /alerts/rules/1000000 /alerts/mutes/1000000
get config admins: /alerts/channels
post config admins: /alerts/channels /alerts/channels/1000000/test
put config admins: /alerts/channels/1000000
delete config admins: /alerts/channels/1000000
get write operators: /audit /audit/chain /audit/export.csv
get read readers: /cluster
get config admins: /cluster/kv
put config admins: /cluster/kv
delete config admins: /cluster/kv
get config admins: /definitions
post config admins: /definitions
get read readers: /live
get read readers: /machine
get read readers: /reports /reports/runs /reports/runs/1000000 /reports/runs/1000000/result
get read readers: /reports/runs/1000000/result.csv /reports/runs/1000000/log /reports/promises /reports/weekly
get read readers: /reports/schedule
post write operators: /reports/runs /reports/runs/1000000/stop /reports/weekly/send
put write operators: /reports/promises /reports/weekly /reports/schedule
get admin readers: /tokens
post admin readers: /tokens
delete admin readers: /tokens/1000000
get admin admins: /security
put admin readers: /account/password
get admin admins: /users /users/no-such
put admin admins: /users/no-such
delete admin admins: /users/no-such/sessions /users/no-such/tokens/1000000
get admin admins: /invitations
post admin admins: /invitations
delete admin admins: /invitations/1000000
"""

PAGE_ROWS = [(name, ROLES[role]) for name, (role,) in names_of(PAGES_OF)]
REST_ROWS = [((method, name), (SCOPES[scope], ROLES[role])) for name, (method, scope, role) in names_of(REST_OF)]
PAGES, REST = dict(PAGE_ROWS), dict(REST_ROWS)


def is_closed(response: HttpResponse) -> bool:
    """Whether the guard kept somebody out."""
    to_log_in = response.status_code == 302 and response.headers["Location"].startswith("/login")
    return response.status_code in (401, 403) or to_log_in


def test_s12_the_tables_have_every_address_and_every_operation() -> None:
    assert sorted(guarded_patterns()) == sorted(name for name, _ in PAGE_ROWS), "each once"
    assert sorted(rest_operations()) == sorted(operation for operation, _ in REST_ROWS), "each once"
    assert [operation for operation, (scopes, _) in REST.items() if operation[0] != "get" and "read" in scopes] == []


@pytest.mark.parametrize("role", ["nobody", "reader", "operator", "admin"])
async def test_s10_s12_pages_open_to_whom_the_table_names(role: str, log_in: Client, gateway: Gateway) -> None:
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
async def test_s12_no_token_and_made_up_ones_open_none(secret: str, users: dict[str, User], gateway: Gateway) -> None:
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
