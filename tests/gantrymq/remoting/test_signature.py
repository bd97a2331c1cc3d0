"""Signatures of official clients, with the keys they were made with."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from gantrymq.errors import ConfigError
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, STAMP, Credentials, SigningKey, Stamper
from tests.gantrymq.remoting.golden import captured
from tests.gantrymq.remoting.signatures import calculate_signature

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


def test_a_stamp_makes_every_signature_another_one_and_is_signed() -> None:
    credentials, stamper = Credentials("key", "secret"), Stamper()
    request = RemotingCommand.request(310, {"b": "T"}, b"body")
    credentials.sign(request, stamper)
    first = dict(request.ext_fields)
    credentials.sign(request, stamper)
    assert request.ext_fields[STAMP] != first[STAMP] and request.ext_fields[SIGNATURE] != first[SIGNATURE]
    assert request.ext_fields[STAMP].split(".")[1:] == [first[STAMP].split(".")[1], "2", "310"]
    assert calculate_signature(request.ext_fields, b"body", "secret") == request.ext_fields[SIGNATURE]
    plain = RemotingCommand.request(310, {"b": "T"}, b"body")
    Credentials("key", "secret", stamped=False).sign(plain, stamper)
    assert STAMP not in plain.ext_fields


@pytest.mark.parametrize("secret", ["s", "x" * 64, "y" * 65, "ü" * 200])
def test_a_prepared_key_gives_hmac_sha1(secret: str) -> None:
    for content, body in ((b"", b""), (b"abc", b""), (b"abc", b"d" * 5000)):
        assert SigningKey(secret).digest(content, body) == hmac.digest(secret.encode(), content + body, "sha1")


def test_credentials_come_from_a_file_like_tools_yml(tmp_path: Path) -> None:
    path = tmp_path / "tools.yml"
    path.write_text("# ours\naccessKey: rocketmq2\nsecretKey: '12345678'\n")
    assert Credentials.from_file(path) == Credentials("rocketmq2", "12345678")
    path.write_text("accessKey: rocketmq2\nsecretKey:\n")
    with pytest.raises(ConfigError, match="secretKey") as refused:
        Credentials.from_file(path)
    assert "rocketmq2" not in str(refused.value)
    with pytest.raises(ConfigError, match=r"nothing\.yml"):
        Credentials.from_file(tmp_path / "nothing.yml")


def test_credentials_come_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "tools.yml"
    path.write_text("accessKey: from-file\nsecretKey: secret-1\n")
    both = {"GANTRYMQ_ACCESS_KEY": "from-variable", "GANTRYMQ_SECRET_KEY": "secret-2"}
    assert Credentials.from_environment({}) is None
    assert Credentials.from_environment(both) == Credentials("from-variable", "secret-2")
    assert Credentials.from_environment(both | {"GANTRYMQ_CREDENTIALS": str(path)}) == Credentials(
        "from-file", "secret-1"
    )
    with pytest.raises(ConfigError, match="GANTRYMQ_SECRET_KEY is missing"):
        Credentials.from_environment({"GANTRYMQ_ACCESS_KEY": "alone"})
