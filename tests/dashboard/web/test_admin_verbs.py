"""`gantry admin` verbs that ask the dashboard, from a shell beside a running appliance."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from appliance.__main__ import main
from tests.appliance.cli.running_gantry import Gantry, run_gantry
from tests.appliance_process import ROOT, RunningAppliance
from tests.gantrymq.client.ports import closed_port
from tests.visitor import PASSWORD, Visitor

Users = Callable[..., str]


@pytest.fixture(scope="module")
def users(gantry: RunningAppliance, administrator: Visitor) -> Users:
    def run(*words: str, text: str = "") -> str:
        command = [sys.executable, "-m", "appliance", "users", *words, "--data", gantry.data]
        ran = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    return run


@pytest.fixture(scope="module")
def token(users: Users) -> str:
    return users("token", "admin", "--scope", "admin")


@pytest.fixture(scope="module")
def readers_token(users: Users) -> str:
    users("add", "rest-reader", "--password-stdin", text=PASSWORD + "\n")
    return users("token", "rest-reader", "--scope", "admin", "--as", "of a reader")


@pytest.fixture
def shell(gantry: RunningAppliance, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Gantry:
    monkeypatch.setenv("GANTRY_DASHBOARD", f"http://{gantry.http}")
    monkeypatch.delenv("GANTRY_TOKEN", raising=False)
    return lambda *words: run_gantry(capsys, "admin", *words)


def test_an_operators_morning_in_a_shell(shell: Gantry, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_TOKEN", token)
    made = shell("alert-rules", "create", "shells are late", "group-behind", "--threshold", "300", "--json")
    assert made.code == 0, made.err
    number = str(made.json["id"])
    assert "shells are late" in shell("alert-rules", "list").out
    assert shell("alert-rules", "set", number, "--off", "--json").json["is_on"] is False
    silenced = shell("mutes", "create", "maintenance", "--until", "2h", "--rule", number, "--json")
    assert shell("mutes", "end", str(silenced.json["id"])).code == 0
    kept = shell("alert-rules", "delete", number)
    assert (kept.code, kept.out) == (2, ""), "no terminal, and no --yes"
    gone = shell("alert-rules", "delete", number, "--yes")
    assert (gone.code, gone.err) == (0, "") and f"rule {number} is deleted" in gone.out
    again = shell("alert-rules", "delete", number, "--yes")
    assert again.code == 1 and f"there is none with the id {number}" in again.err


def test_what_can_not_be_taken_is_said_by_field(shell: Gantry, token: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(token + "\n", "ascii")
    refused = shell("alert-rules", "create", "x", "group-behind", "--threshold", "1", "--clear", "9",
                    "--token-file", str(file))  # fmt: skip
    assert (refused.code, refused.out) == (2, "") and "clear: This kind opens above" in refused.err


def test_a_reader_may_look_not_change(shell: Gantry, readers_token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_TOKEN", readers_token)
    assert shell("alerts", "list").code == 0
    rule = str(shell("alert-rules", "list", "--json").json["items"][0]["id"])
    for words in (["users", "list"], ["alert-rules", "set", rule, "--off"], ["invitations", "create", "Eve"]):
        refused = shell(*words)
        assert (refused.code, refused.out) == (1, "") and "does not allow that; it needs" in refused.err, words


def test_a_token_that_is_unknown_is_refused_and_not_repeated(shell: Gantry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_TOKEN", "gmq_made_up")
    refused = shell("alerts", "list", "--json")
    assert refused.code == 1 and "unknown, revoked or over" in refused.json["error"]
    assert "gmq_made_up" not in refused.out + refused.err


def test_without_a_dashboard_it_says_so(shell: Gantry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GANTRY_TOKEN", "gmq_x")
    ran = shell("alerts", "list", "--dashboard", f"http://{closed_port()}")
    assert ran.code == 1 and "no dashboard answers at" in ran.err and "connection refused" in ran.err


def test_a_shells_token_is_in_the_audit_log_without_its_secret(
    shell: Gantry, token: str, administrator: Visitor
) -> None:
    answer = administrator.request("GET", "/api/v1/audit?q=token", Authorization=f"Bearer {token}")
    events = json.loads(answer.text)
    assert answer.status == 200, answer.text
    assert "token created" in json.dumps(events) and token not in answer.text


def test_a_word_without_a_token_touches_nothing(shell: Gantry) -> None:
    ran = shell("tokens", "create", "CI")
    assert (ran.code, ran.out) == (2, "") and "GANTRY_TOKEN" in ran.err
    assert main(["admin", "pause", "g"]) == 2
