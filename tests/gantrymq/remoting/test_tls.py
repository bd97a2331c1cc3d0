"""A client's TLS contexts follow their files."""

from __future__ import annotations

import logging
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest

from gantrymq.errors import ConfigError
from gantrymq.remoting.tls import ClientTls, TlsConfig
from tests.certificates import authority


def test_a_context_of_ones_own_is_used_as_it_is() -> None:
    context = ssl.create_default_context()
    assert ClientTls(context).context() is context


def test_the_default_verifies_and_speaks_no_old_version() -> None:
    context = TlsConfig().context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_new_files_make_a_new_context_broken_ones_keep_the_old(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trust = tmp_path / "ca.pem"
    shutil.copy(authority() / "ca.pem", trust)
    tls = ClientTls(TlsConfig(trust_cert=trust))
    first = tls.context()
    assert tls.context() is first
    shutil.copy(authority("theirs") / "ca.pem", tmp_path / "new.pem")
    (tmp_path / "new.pem").replace(trust)  # not written over: within a tick of the clock that might look the same
    second = tls.context()
    assert second is not first
    trust.write_text("broken")
    caplog.set_level(logging.ERROR)
    assert tls.context() is tls.context() is second
    records = [record for record in caplog.records if record.name == "gantrymq.remoting.tls"]
    assert [getattr(record, "event", "") for record in records] == ["tls_files_unusable"]


@pytest.mark.parametrize("name", ["trust_cert", "cert", "key"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    files = {
        "trust_cert": authority() / "ca.pem",
        "cert": authority() / "client.pem",
        "key": authority() / "client.key",
    }
    with pytest.raises(ConfigError, match=r"gone\.pem"):
        ClientTls(TlsConfig(**(files | {name: tmp_path / "gone.pem"})))  # type: ignore[arg-type]


def test_a_password_is_used_and_never_shown(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key((authority() / "client.key").read_bytes(), None)
    sealed = tmp_path / "sealed.key"
    encryption = serialization.BestAvailableEncryption(b"open sesame")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    sealed.write_bytes(key.private_bytes(*form))
    files: dict[str, Any] = {"trust_cert": authority() / "ca.pem", "cert": authority() / "client.pem", "key": sealed}
    config = TlsConfig(**files, key_password="open sesame")
    config.context()
    assert "sesame" not in repr(config)
    for wrong in ("", "sesame open"):
        with pytest.raises(ConfigError, match=r"sealed\.key") as refusal:
            TlsConfig(**files, key_password=wrong).context()
        assert "sesame" not in str(refusal.value)
