"""`gantry tls create`, and `gantry up` with what it made."""

from __future__ import annotations

import re
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.__main__ import main
from gantrymq import Message, SyncProducer
from gantrymq.errors import GantryError
from gantrymq.remoting.tls import TlsConfig
from tests.appliance_process import RunningAppliance
from tests.visitor import admin_of
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates made by the command."""
    made = tmp_path_factory.mktemp("tls") / "certificates"
    assert main(["tls", "create", str(made), "--host", "mq.example.org"]) == 0
    return made


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[RunningAppliance]:
    options = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-trust", "ca.pem"]
    options = [str(folder / text) if text.endswith((".pem", ".key")) else text for text in options]
    options += ["--tls-mode", "enforcing", "--tls-client-auth", "require"]
    with RunningAppliance(tmp_path_factory.mktemp("up-tls") / "data", *options) as running:
        yield running


def test_keys_are_readable_by_their_owner_only_and_nothing_is_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ca", "server", "client"):
        assert stat.S_IMODE((folder / f"{name}.key").stat().st_mode) == 0o600
    before = (folder / "ca.key").read_bytes()
    assert main(["tls", "create", str(folder)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert (folder / "ca.key").read_bytes() == before


def test_clients_with_a_certificate_are_served_and_nobody_else(gantry: RunningAppliance, folder: Path) -> None:
    known = TlsConfig(trust_cert=folder / "ca.pem", cert=folder / "client.pem", key=folder / "client.key")
    with SyncProducer(gantry.namesrv, tls=known) as producer:
        assert producer.send(Message("tls-test", b"hello")).status.name == "SEND_OK"
    for stranger in (None, TlsConfig(trust_cert=folder / "ca.pem")):
        with SyncProducer(gantry.namesrv, tls=stranger) as producer, pytest.raises(GantryError):
            producer.send(Message("tls-test", b"hello"))


def test_the_admin_command_shows_a_certificate_whose_key_stands_in_a_file_of_its_own(
    gantry: RunningAppliance, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trust = ["--tls-trust", str(folder / "ca.pem"), "-n", gantry.namesrv]
    identity = ["--tls-cert", str(folder / "client.pem"), "--tls-key", str(folder / "client.key")]
    assert main(["admin", *trust, *identity, "brokers", "list"]) == 0
    assert "master" in capsys.readouterr().out
    assert main(["admin", "brokers", "list", *trust, *identity]) == 0
    for incomplete in (trust, [*trust, "--tls-key", str(folder / "client.key")], [*trust, *identity[:2]]):
        assert main(["admin", "brokers", "list", *incomplete]) != 0
    capsys.readouterr()
    assert main(["admin", "brokers", "list", "-n", gantry.namesrv, "--tls", "--timeout", "60"]) == 1
    assert "--tls-trust FILE names the certificates to trust" in capsys.readouterr().err
    for options, hint in (
        (trust[2:], "give --tls"),
        (trust, "--tls-cert and --tls-key"),
        ([*trust, *identity[:2]], "--tls-key FILE"),
    ):
        assert main(["admin", "brokers", "list", "--timeout", "60", *options]) in (1, 2)
        assert hint in capsys.readouterr().err


def test_the_dashboard_reaches_the_brokers(gantry: RunningAppliance, folder: Path) -> None:
    browser = admin_of(gantry, ssl.create_default_context(cafile=str(folder / "ca.pem")))
    wait_until(lambda: "1 of 1" in re.sub("<[^>]*>", "", browser.get("/").text))


def test_what_can_not_work_is_said_before_anything_starts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["up", "--data", str(tmp_path), "--tls-mode", "enforcing"]) == 2
    assert "gantry tls create" in capsys.readouterr().err
    assert main(["up", "--data", str(tmp_path / "data"), "--tls-cert", str(tmp_path / "missing.pem")]) == 1
    assert "missing.pem" in capsys.readouterr().err
