"""Signatures of official clients as the broker checks them, and that each refusal takes the same work."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.acl.access import AccessDenied
from appliance.acl.signature_check import SignatureCheck
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.signature import ACCESS_KEY, SIGNATURE, Credentials, SigningKey, Stamper
from tests.appliance.acl.cluster import UNKNOWN, WRONG, Client, guarded, send_fields
from tests.gantrymq.remoting.golden import captured

SECRETS = {"adminKey1": "adminSecret1", "limitedKey": "limitedSecret"}  # accounts of the recorded broker


def test_captured_requests_are_genuine_but_for_those_with_a_wrong_secret() -> None:
    check = SignatureCheck()
    refused, genuine = set(), 0
    for record in captured("acl"):
        request = RemotingCommand.decode(bytes.fromhex(record["hex"])[4:])
        secret = SECRETS.get(request.ext_fields.get(ACCESS_KEY, ""))
        if secret is None:
            continue
        if check.is_genuine(SigningKey(secret), request.ext_fields, request.body):
            genuine += 1
        else:
            refused.add(record["scenario"])
    assert genuine > 200
    assert refused == {"acl-wrong-secret", "acl-go-send-wrong-secret"}


@pytest.mark.parametrize("unsigned", ["_UNIQUE_KEY_QUERY", "SecurityToken"])
def test_what_some_clients_leave_out_may_be_left_out_and_nothing_else(unsigned: str) -> None:
    key, check = SigningKey("secret12"), SignatureCheck()
    request = RemotingCommand.request(12, {"topic": "T", "key": "K"}, b"")
    Credentials("access12", "secret12").sign(request)
    fields = request.ext_fields | {unsigned: "true"}
    assert check.is_genuine(key, request.ext_fields, b"") and check.is_genuine(key, fields, b"")
    assert not check.is_genuine(key, request.ext_fields | {"other": "true"}, b"")


@pytest.mark.parametrize("signature", ["", "ü", "=" * 10_000, "\ud800", "AAAA"])
def test_no_text_in_the_signatures_place_breaks_the_check(signature: str) -> None:
    fields = {"b": "T", SIGNATURE: signature}
    assert not SignatureCheck().is_genuine(SigningKey("secret12"), fields, b"")


def test_one_field_and_none_are_signed_too() -> None:
    check = SignatureCheck()
    for fields in ({}, {"topic": "T"}):
        request = RemotingCommand.request(105, dict(fields))
        Credentials("access12", "secret12").sign(request)
        assert check.is_genuine(SigningKey("secret12"), request.ext_fields, b"")


def test_field_sets_that_a_client_makes_up_fill_no_memory() -> None:
    check = SignatureCheck()
    for number in range(5000):
        check.is_genuine(SigningKey("s"), {f"f{number}": "x", SIGNATURE: ""}, b"")
    assert len(check._orders) <= 1024


async def test_an_unknown_account_is_as_much_work_as_a_wrong_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a refusal must not tell which accounts exist: the body is hashed as often for either."""
    hashed: list[int] = []
    digest = SigningKey.digest

    def counted(key: SigningKey, content: bytes, body: bytes) -> bytes:
        hashed.append(len(body))
        return digest(key, content, body)

    async with guarded(tmp_path) as cluster:
        gate = cluster.broker.access
        assert gate is not None
        work, texts = [], set()
        for account in (WRONG, UNKNOWN):
            request = RemotingCommand.request(310, send_fields("TopicX"), b"x" * 1000)
            account.sign(request, Stamper())
            with monkeypatch.context() as patch:
                patch.setattr(SigningKey, "digest", counted)
                hashed.clear()
                with pytest.raises(AccessDenied) as refused:
                    gate(Client(), request)
            work.append(list(hashed))
            texts.add(str(refused.value).replace(account.access_key, "KEY"))
    assert work == [[1000], [1000]]
    assert len(texts) == 1


def test_a_signature_is_wrong_wherever_it_differs() -> None:
    request = RemotingCommand.request(12, {"topic": "T", "SecurityToken": "t"})
    Credentials("access12", "secret12").sign(request)
    key, check, right = SigningKey("secret12"), SignatureCheck(), request.ext_fields[SIGNATURE]
    assert check.is_genuine(key, request.ext_fields, b"")
    wrong = [right[:at] + ("A" if right[at] != "A" else "B") + right[at + 1 :] for at in range(len(right))]
    for signature in (*wrong, right[:-1], right + "A", right.lower(), f" {right}"):
        assert not check.is_genuine(key, request.ext_fields | {SIGNATURE: signature}, b""), signature
