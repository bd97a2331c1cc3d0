"""Signatures of official clients as the broker checks them, and that nothing can be learnt from the time it takes."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from appliance.acl import signature_check
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


async def test_an_unknown_account_takes_as_long_as_a_wrong_signature(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        gate = cluster.broker.access
        assert gate is not None
        times: dict[Credentials, list[float]] = {WRONG: [], UNKNOWN: []}
        texts = set()
        for _ in range(400):
            for account, taken in times.items():
                request = RemotingCommand.request(310, send_fields("TopicX"), b"x" * 100_000)
                account.sign(request, Stamper())
                start = time.perf_counter()
                try:
                    gate(Client(), request)
                except AccessDenied as exc:
                    taken.append(time.perf_counter() - start)
                    texts.add(str(exc).replace(account.access_key, "KEY"))
        assert len(texts) == 1
        wrong, unknown = (statistics.median(taken) for taken in times.values())
        assert 0.5 < wrong / unknown < 2  # the hash of the body dominates: who skips it shows at once


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every decision is hmac.compare_digest's: with one that always says no, nothing is genuine."""
    request = RemotingCommand.request(12, {"topic": "T", "SecurityToken": "t"})
    Credentials("access12", "secret12").sign(request)
    key, check = SigningKey("secret12"), SignatureCheck()
    assert check.is_genuine(key, request.ext_fields, b"")
    monkeypatch.setattr(signature_check.hmac, "compare_digest", lambda ours, given: False)
    assert not check.is_genuine(key, request.ext_fields, b"")
