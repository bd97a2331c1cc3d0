"""Options: what can't be meant is refused by name, and secrets stay where they are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gantrymq.contrib.spark.options import READING, Connection, Options, connection_of, read_options
from gantrymq.contrib.spark.sink import write_options
from gantrymq.errors import ConfigError

SPARKS_REDACTION = r"(?i)secret|password|token|access[.]?key"  # the default of spark.redaction.regex


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "say where messages are"),
        ({"path": "/store", "namesrv": "a:9876"}, "one of both"),
        ({"path": "/store", "startingOfsets": "earliest"}, "option startingofsets: unknown"),
        ({"path": "/store", "subscribe": "a", "assign": '{"a": [0]}'}, "only one of them"),
        ({"path": "/store", "subscribePattern": "("}, "option subscribePattern"),
        ({"path": "/store", "maxOffsetsPerTrigger": "0"}, "option maxOffsetsPerTrigger='0'"),
        ({"path": "/store", "minPartitions": "many"}, "option minPartitions='many'"),
        ({"path": "/store", "failOnDataLoss": "no"}, "option failOnDataLoss='no'"),
        ({"path": "/store", "assign": "[0]"}, "option assign: JSON"),
        ({"path": "/store", "assign": '{"a": 0}'}, "option assign: a"),
        ({"namesrv": "a:9876", "accessKey": "me"}, "both options"),
        ({"namesrv": "a:9876", "accessKey": "me", "secretKey": "s", "credentialsFile": "f"}, "not from both"),
    ],
)
def test_what_can_not_be_meant_is_refused_by_name(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        read_options(given)


def test_spark_hides_the_options_that_are_secret() -> None:
    secret = {name for name in READING if re.search(SPARKS_REDACTION, name)}
    assert secret == {"accessKey", "secretKey", "securityToken", "tlsKeyPassword"}


def test_no_secret_is_in_what_is_printed() -> None:
    given: dict[str, Any] = {"namesrv": "a:9876", "accessKey": "AKEY", "secretKey": "SKEY", "tlsKeyPassword": "PKEY"}
    for options in (read_options(given), write_options(given | {"topic": "t"}), connection_of(Options(given, READING))):
        text = f"{options!r} {options}"
        assert not any(secret in text for secret in ("AKEY", "SKEY", "PKEY"))


def test_an_account_is_of_options_else_a_file_else_environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRYMQ_ACCESS_KEY", "from-environment")
    monkeypatch.setenv("GANTRYMQ_SECRET_KEY", "s")
    (tmp_path / "tools.yml").write_text("accessKey: from-file\nsecretKey: s\n")
    assert _account({}) == "from-environment"
    assert _account({"credentialsFile": str(tmp_path / "tools.yml")}) == "from-file"
    assert _account({"accessKey": "from-options", "secretKey": "s"}) == "from-options"


def test_tls_is_on_when_one_of_its_options_is_there() -> None:
    assert _connection({}).tls is None
    tls = _connection({"tlsTrustCert": "ca.pem", "tlsCheckHost": "false"}).tls
    assert tls is not None and tls.trust_cert == "ca.pem" and not tls.check_host and tls.verify


def _connection(given: dict[str, str]) -> Connection:
    connection = read_options({"namesrv": "a:9876"} | given).connection
    assert connection is not None
    return connection


def _account(given: dict[str, str]) -> str | None:
    credentials = _connection(given).credentials()
    return credentials and credentials.access_key
