"""Signatures of official clients, with the keys they were made with."""

from __future__ import annotations

import pytest

from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, Credentials, calculate_signature
from tests.remoting.golden import captured

SECRETS = {"adminKey1": "adminSecret1", "limitedKey": "limitedSecret"}  # accounts of the recorded broker


def signed_requests() -> list[tuple[str, RemotingCommand]]:
    """(scenario, request) of every request that was signed for a known account."""
    commands = [
        (record["scenario"], RemotingCommand.decode(bytes.fromhex(record["hex"])[4:])) for record in captured("acl")
    ]
    return [(scenario, command) for scenario, command in commands if command.ext_fields.get(ACCESS_KEY) in SECRETS]


def is_genuine(command: RemotingCommand, *leave_out: str) -> bool:
    secret = SECRETS[command.ext_fields[ACCESS_KEY]]
    expected = calculate_signature(command.ext_fields, command.body, secret, leave_out=leave_out)
    return expected == command.ext_fields[SIGNATURE]


def test_the_signatures_of_captured_requests_come_out_again() -> None:
    refused = {scenario for scenario, command in signed_requests() if not is_genuine(command)}
    assert refused == {"acl-wrong-secret", "acl-go-send-wrong-secret", "acl-go-send-security-token"}
    assert len(signed_requests()) > 200


def test_the_go_client_leaves_the_security_token_out_of_its_signature() -> None:
    signed = [command for scenario, command in signed_requests() if scenario == "acl-go-send-security-token"]
    assert signed
    assert all(is_genuine(command, SECURITY_TOKEN) for command in signed)


def test_a_signed_request_verifies_and_a_changed_one_does_not() -> None:
    request = RemotingCommand.request(310, {"b": "T", "a": "G"}, b"body")
    Credentials("key", "secret").sign(request)
    assert calculate_signature(request.ext_fields, b"body", "secret") == request.ext_fields[SIGNATURE]
    assert calculate_signature(request.ext_fields, b"Body", "secret") != request.ext_fields[SIGNATURE]
    request.ext_fields["b"] = "U"
    assert calculate_signature(request.ext_fields, b"body", "secret") != request.ext_fields[SIGNATURE]


def test_signing_twice_gives_the_same_signature() -> None:
    request = RemotingCommand.request(310, {"b": "T"}, b"body")
    credentials = Credentials("key", "secret", "token")
    credentials.sign(request)
    first = request.ext_fields[SIGNATURE]
    credentials.sign(request)
    assert request.ext_fields[SIGNATURE] == first


@pytest.mark.parametrize("shown", [repr, str])
def test_secrets_are_not_shown(shown: object) -> None:
    assert callable(shown)
    text = shown(Credentials("key", "hidden-secret", "hidden-token"))
    assert "hidden" not in text
    assert "key" in text
