"""Every line for a shell is run by a test or listed with the reason; these are the lines that need one appliance."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.appliance_process import RunningAppliance
from tests.docs.pages import ROOT
from tests.docs.shell_lines import HERE, LINES, NOT_RUN, RUN, run_here, what_runs
from tests.visitor import PASSWORD, admin_of
from tests.waiting import wait_until

SECRETS = PASSWORD + "\n"  # what a command asks for
ACCOUNT = "appliance.yml"


def test_every_line_is_run_by_a_test_or_has_a_reason() -> None:
    tests = {what_runs(line) for line in LINES}
    assert [test for test in tests if test and not (ROOT / test).is_file()] == []
    steps = (ROOT / ".ci" / "run").read_text().splitlines()
    by_ci = {line.command.split()[0] for line in LINES if what_runs(line) == ".ci/run"}
    assert [command for command in by_ci if not any(command in step.split() for step in steps)] == []


def test_no_rule_is_left_over() -> None:
    def fits(page: str, start: str) -> bool:
        return any(line.page == page and line.command.startswith(start) for line in LINES)

    assert [(page, start) for page, start, _ in (*RUN, *NOT_RUN) if not fits(page, start)] == []


class Shell:
    """Runs lines as they stand on the page, in the folder of the test."""

    def __init__(self, gantry: RunningAppliance, folder: Path) -> None:
        self._folder = folder
        program = folder / "bin" / "gantry"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m appliance "$@"\n')
        program.chmod(0o755)
        self.variables = os.environ | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GANTRY_DATA": gantry.data,
            "GANTRY_NAMESRV": gantry.namesrv,
            "GANTRYMQ_CREDENTIALS": str(Path(gantry.data) / "accounts" / ACCOUNT),
        }

    def run(self, line: str, replaced: Mapping[str, str], code: int = 0) -> str:
        """What it prints. The line's exit code is `code`."""
        for text, mine in replaced.items():
            line = line.replace(text, mine)
        done = subprocess.run(
            ["bash", "-c", line], cwd=self._folder, env=self.variables, input=SECRETS, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == code, f"{line}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def gantry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAppliance]:
    with RunningAppliance(tmp_path_factory.mktemp("shown") / "data", "--accounts") as running:
        visitor = admin_of(running)
        for topic in ("orders", "prices", "demo"):
            visitor.send_message(topic, "shown")
        yield running


@pytest.fixture(scope="module")
def shell(gantry: RunningAppliance, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(gantry, tmp_path_factory.mktemp("shell"))


@pytest.mark.slow
def test_the_lines_about_accounts_and_users(gantry: RunningAppliance, shell: Shell) -> None:
    for line in run_here("accounts.md"):
        if line.startswith("export GANTRY_TOKEN"):
            shell.run("gantry users limit ada --all", {})  # by then ada is a limited reader
            shell.run("gantry users roles ada admin", {})
            shell.variables["GANTRY_TOKEN"] = shell.run("gantry users token ada --scope admin", {}).split()[-1]
            shell.variables["GANTRY_DASHBOARD"] = gantry.url
        asks = line.startswith(("gantry users add", "gantry users reset-password"))
        printed = shell.run(line + " --password-stdin" * asks, {})
        assert printed or line.startswith("export")


@pytest.mark.slow
def test_the_lines_about_topics_and_stores(gantry: RunningAppliance, shell: Shell) -> None:
    store = Path(gantry.data) / "brokers" / "broker-a" / "store"
    for line in run_here("storage.md"):
        if " repair " not in line:  # which needs a stopped broker
            assert shell.run(line, {"FOLDER": str(store)})


@pytest.mark.slow
def test_the_lines_about_backups(gantry: RunningAppliance, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    mine = {"/mnt/backups": str(tmp_path / "backups"), "/var/lib/gantrymq": str(tmp_path / "restored")}
    for line in run_here("backup.md"):
        shell.run(line, mine)
    restored = tmp_path / "restored" / "brokers" / "broker-a" / "store"
    (repair,) = [line for line in run_here("storage.md") if " repair " in line]
    shell.run(repair, {"FOLDER": str(restored)})


@pytest.mark.slow
def test_the_lines_about_alerts(gantry: RunningAppliance, shell: Shell) -> None:
    shell.run("gantry users add anna --role admin --password-stdin", {})
    shell.variables["GANTRY_TOKEN"] = shell.run("gantry users token anna --scope admin", {}).split()[-1]
    shell.variables["GANTRY_DASHBOARD"] = gantry.url
    shell.run("gantry admin alert-rules create some-disk disk-used --threshold 0.01 --for 0", {})
    found: list[str] = []

    def has_begun() -> bool:
        rows = json.loads(shell.run("gantry admin alerts list --open --json", {}))["items"]
        found[:] = [str(row["id"]) for row in rows if "some-disk" in row["title"]]
        return bool(found)

    wait_until(has_begun)
    for line in run_here("alerts.md"):
        assert shell.run(line, {"17": found[0]})


def test_the_lines_that_fetch_an_upgrade(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.invalid", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    git("init", "--quiet", "published")
    git("-C", "published", "commit", "--quiet", "--allow-empty", "--message", "Begin")
    git("clone", "--quiet", "published", "mine")
    script = tmp_path / "published" / "deploy" / "upgrade"
    script.parent.mkdir()
    script.write_text("of the newer version\n")
    git("-C", "published", "add", "deploy")
    git("-C", "published", "commit", "--quiet", "--message", "Go on")
    git("-C", "published", "tag", "v0.2.0")
    for line in run_here("upgrade.md"):
        subprocess.run(["bash", "-c", line], cwd=tmp_path / "mine", check=True)
    assert git("-C", "mine", "tag", "--list").split() == ["v0.2.0"]
    assert (tmp_path / "mine" / ".git" / "upgrade").read_text() == script.read_text()


def test_the_page_of_proofs_counts_the_lines() -> None:
    ran = [what_runs(line) for line in LINES]
    here, none = ran.count(HERE), ran.count("")
    by_tests = len(ran) - here - none
    told = (ROOT / "docs/proofs.md").read_text(encoding="utf-8")
    assert re.search(
        rf"\| {len(ran)} lines on \S+: {here} run against one appliance, {by_tests} by the tests that", told
    )
    assert f", {none} by none (" in told
