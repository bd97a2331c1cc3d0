"""What a support bundle has, and that no secret of the appliance is in it, wherever it stands."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from appliance.cli.support.bundle import gathered
from appliance.cli.support.secrets import REMOVED, Secrets
from appliance.settings.appliance_config import ApplianceConfig
from tests.appliance.cli.running_gantry import run_gantry
from tests.appliance_process import RunningAppliance
from tests.waiting import wait_until

# Each stands in a place of its own; none of them may be in a bundle.
PLANTED = {
    "account of a client": "PLANTEDaccountSecret1",
    "white space": "PLANTED pass phrase 2",
    "own account": "PLANTEDownAccount3",
    "key of TLS": "PLANTEDtlsKeyBase64Line4",
    "password of that key": "PLANTEDtlsPassword5",
    "secret key of Django": "PLANTEDdjango6",
    "webhook": "PLANTEDwebhook7",
    "mail": "PLANTEDsmtp8",
    "hash of a password": "pbkdf2_sha256$PLANTEDhash9",
    "etcd": "PLANTEDetcd10",
    "database": "PLANTEDdatabase11",
    "redis": "PLANTEDredis12",
    "provider": "PLANTEDprovider13",
    "token": "PLANTEDtoken14",
    "cloud": "PLANTEDcloud15",
    "quoted": "PLANTED/quoted+17==",
}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ApplianceConfig:
    """A data folder with a secret in each place that has one, and all of them in a log."""
    data = tmp_path / "data"
    for folder in ("accounts/conf/acl", "brokers/broker-a", "dashboard", "logs", "etcd"):
        (data / folder).mkdir(parents=True)
    secret = PLANTED.__getitem__
    (data / "accounts/conf/plain_acl.yml").write_text(
        f"accounts:\n- accessKey: someone\n  secretKey: {secret('account of a client')}\n"
        f"- accessKey: other\n  secretKey: '{secret('white space')}'\n"
    )
    (data / "accounts/appliance.yml").write_text(f"accessKey: own\nsecretKey: {secret('own account')}\n")
    key = tmp_path / "tls.key"
    key.write_text(f"-----BEGIN PRIVATE KEY-----\n{secret('key of TLS')}\n-----END PRIVATE KEY-----\n")
    (tmp_path / "etcd-password").write_text(f"{secret('etcd')}\n")
    (tmp_path / "provider").write_text(f"{secret('provider')}\n")
    (data / "brokers/broker-a/broker.properties").write_text(
        f"brokerName=broker-a\ntls.server.keyPath={key}\ntls.server.keyPassword={secret('password of that key')}\n"
        f"etcdPasswordFile={tmp_path / 'etcd-password'}\n"
    )
    (data / "dashboard/secret_key").write_text(secret("secret key of Django"))
    with sqlite3.connect(data / "dashboard/db.sqlite3") as database:
        database.execute("CREATE TABLE dashboard_alertchannel (name, settings)")
        database.execute("CREATE TABLE auth_user (username, password)")
        hook = {"url": f"https://hooks.example.org/services/{secret('webhook')}", "password": secret("mail")}
        database.execute("INSERT INTO dashboard_alertchannel VALUES (?, ?)", ("hook", json.dumps(hook)))
        database.execute("INSERT INTO auth_user VALUES (?, ?)", ("ann", secret("hash of a password")))
    database.close()
    monkeypatch.setenv("GANTRY_TOKEN", secret("token"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret("cloud"))
    monkeypatch.setenv("GANTRYMQ_SECRET_KEY", secret("quoted"))
    monkeypatch.setenv("GANTRY_DATABASE_URL", f"postgresql://gantry:{secret('database')}@127.0.0.1:1/gantry")
    monkeypatch.setenv("GANTRY_CHANNEL_LAYER_URL", f"redis://:{secret('redis')}@127.0.0.1:1/0")
    monkeypatch.setenv("GANTRY_OIDC_ISSUER", "https://id.example.org")
    monkeypatch.setenv("GANTRY_OIDC_CLIENT_ID", "gantry")
    monkeypatch.setenv("GANTRY_OIDC_OTHERS", "reader")
    monkeypatch.setenv("GANTRY_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "provider"))
    lines = [f"something failed: {value}" for value in PLANTED.values()]
    lines += ['{"password": "PLANTED16"}', "GET https://h.example.org/x%20y?PLANTED=18"]
    lines += ["Authorization: Bearer PLANTED19", "postgresql://who:PLANTED20@h/x", "an honest line of orders"]
    (data / "logs/gantry.log").write_text("\n".join(lines) + "\n")
    return ApplianceConfig.load({"data": data})


def content_of(bundle: Path) -> dict[str, str]:
    with tarfile.open(bundle) as archive:
        found = {}
        for item in archive.getmembers():
            file = archive.extractfile(item)
            assert file is not None and item.mode == 0o600
            found[item.name.partition("/")[2]] = file.read().decode()
        return found


def test_no_planted_secret_is_in_the_bundle(
    planted: ApplianceConfig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_gantry(capsys, "support-bundle", "--data", str(planted.data), "--output", str(tmp_path / "out.tar.gz"))
    assert ran.code == 0, ran.err
    found = content_of(tmp_path / "out.tar.gz")
    assert {"versions.json", "settings.json", "doctor.txt", "cluster.json", "logs/gantry.log"} <= set(found)
    assert "an honest line of orders" in found["logs/gantry.log"]
    assert "not gathered" in found["cluster.json"]  # nothing runs there
    leaked = [name for name, text in found.items() if "PLANTED" in text]
    assert leaked == [], [line for name in leaked for line in found[name].splitlines() if "PLANTED" in line]


def test_where_nothing_runs_each_line_is_the_commands_own(tmp_path: Path) -> None:
    """Not those that the SDK logs as well. In a process of its own: pytest takes what is logged in this one."""
    command = [sys.executable, "-P", "-m", "appliance", "support-bundle", "--data", tmp_path]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["gantry support-bundle"]


def test_a_part_that_can_not_be_freed_of_a_secret_is_left_out(planted: ApplianceConfig) -> None:
    class Stubborn(Secrets):
        def without(self, text: str) -> str:
            return text

    text = gathered(lambda: PLANTED["own account"], Stubborn(planted, {}))
    assert text.startswith("left out:")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tls.server.keyPassword=abc", f"tls.server.keyPassword={REMOVED}"),
        ('"api_key": "x y"', f'"api_key": {REMOVED}'),
        ("postgresql://ann:pw@host:5/name", f"postgresql://{REMOVED}@host:5/name"),
        ("https://hooks.example.org/a/b?c", f"https://hooks.example.org/{REMOVED}"),
        ("-----BEGIN EC PRIVATE KEY-----\nMIIB\n", REMOVED),
        ("tls.server.keyPath=/etc/key.pem", "tls.server.keyPath=/etc/key.pem"),
        ("group token-readers has 3 messages", "group token-readers has 3 messages"),
    ],
)
def test_what_has_the_form_of_a_secret_is_removed_though_nobody_knows_it(tmp_path: Path, text: str, shown: str) -> None:
    assert Secrets(ApplianceConfig(data=tmp_path), {}).without(text).rstrip("\n") == shown


def test_a_running_appliance_tells_processes_figures_stores_and_stacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunningAppliance(tmp_path / "data", "--accounts") as gantry:
        config = ["--data", gantry.data, "--output", str(tmp_path / "bundle.tar.gz")]
        path = tmp_path / "gantry.toml"
        path.write_text("accounts = true\n")  # which port the name server has is in the data folder
        ran = run_gantry(capsys, "support-bundle", "--config", str(path), *config)
        assert ran.code == 0, ran.err
        found = content_of(tmp_path / "bundle.tar.gz")
        processes = json.loads(found["processes.json"])
        figures = json.loads(found["cluster.json"])["figures"]
        assert len(processes) >= 4 and all(one["threads"] for one in processes)
        assert [name.partition(" ")[0] for name in figures] == ["broker-a"]
        assert "live" in json.loads(found["stores/broker-a.json"])["facts"]["state"]
        log, stacks = Path(gantry.data) / "logs" / "broker-a.log", re.compile("Current thread|Thread 0x")
        wait_until(lambda: stacks.search(log.read_text()))  # a held up process prints them late
        config[-1] = str(tmp_path / "again.tar.gz")
        assert run_gantry(capsys, "support-bundle", "--config", str(path), *config).code == 0
        assert stacks.search(content_of(tmp_path / "again.tar.gz")["logs/broker-a.log"])
        key = (Path(gantry.data) / "dashboard" / "secret_key").read_text().strip()
        assert not [name for name, text in found.items() if key in text]
        assert all(process.is_running() for process in gantry.workers())
