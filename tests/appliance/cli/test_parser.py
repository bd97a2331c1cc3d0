"""Wrong words to `gantry` and its commands: exit code 2, what is meant, and a valid example."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from appliance.cli.admin.send import parse_deliver_at
from tests.appliance.cli.running_gantry import run_gantry


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("amdin", "there is no command 'amdin' (did you mean admin?)"),
        ("stroe check x", "did you mean store?"),
        ("--nope", "see `gantry up --help`"),
        ("--borkers 2", "did you mean --brokers?"),
        ("store chek x", "did you mean check?"),
        ("store --json check x", "options of a verb come after the verb"),
        ("store dump x recods", "did you mean records?"),
        ("store check x --index-slots many", "'many' is not a whole number, such as 8"),
        ("store check /nowhere/at/all", "there is no folder /nowhere/at/all"),
        ("tls craete x", "did you mean create?"),
        ("tls create x --host 1.2.3", "such as broker.example.org"),
        ("tls create x --host .", "such as broker.example.org"),
        ("bench --scenario snd-1x1", "did you mean send-1x1?"),
        ("bench --seconds soon", "'soon' is not a number, such as 2.5"),
        ("bench --rounds 0", "--rounds 0: use 1 or more"),
        ("up --brokers many", "'many' is not a whole number"),
        ("up --borkers 2", "did you mean --brokers?"),
        ("version now", "'now' is too much"),
    ],
)
def test_a_wrong_line_is_exit_code_2_and_says_what_would_be_right(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_gantry(capsys, *line.split())
    assert (ran.code, ran.out, hint in ran.err) == (2, "", True), ran


@pytest.mark.parametrize("line", ["admin", "admin topics", "admin accounts", "store", "tls"])
def test_a_command_without_words_explains_itself(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_gantry(capsys, *line.split())
    assert (ran.code, ran.out, ran.err.startswith(f"usage: gantry {line}".rstrip())) == (2, "", True)
    assert ran.err == run_gantry(capsys, *line.split(), "--help").out


def test_without_a_command_it_is_the_one_that_starts_the_appliance(capsys: pytest.CaptureFixture[str]) -> None:
    ran = run_gantry(capsys, "--data", "/nowhere", "--brokers", "0")
    assert (ran.code, ran.err) == (2, run_gantry(capsys, "up", "--data", "/nowhere", "--brokers", "0").err)


def test_the_version_is_told_by_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_gantry(capsys, "--version").out == run_gantry(capsys, "version").out != ""


def test_the_folder_around_a_store_leads_to_the_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    ran = run_gantry(capsys, "store", "check", str(tmp_path), "--json")
    assert (ran.code, ran.json["error"]) == (2, f"{tmp_path} is not a store, but {tmp_path / 'store'} is one")


def test_certificates_go_nowhere_that_can_not_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    ran = run_gantry(capsys, "tls", "create", str(tmp_path / "file" / "folder"))
    assert (ran.code, ran.err.startswith("gantry tls: can't write to ")) == (1, True)


@pytest.mark.parametrize("wrong", ["2h", "begin", "2020-01-01T10:00", "soon"])
def test_the_time_that_is_proposed_for_a_delivery_is_one_that_is_taken(wrong: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        parse_deliver_at(wrong)
    (proposed,) = re.findall(r"use (\S+T[0-9:]+),", str(refused.value))
    assert parse_deliver_at(proposed) > 0


def test_all_that_changes_something_takes_yes_whether_it_asks_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    for line, hint in (("config set", "never asks"), ("topics create", "never asks"), ("topics delete", "ask")):
        told = run_gantry(capsys, "admin", *line.split(), "--help")
        assert (told.code, "-y, --yes" in told.out, hint in told.out) == (0, True, True), told
    assert "--yes" not in run_gantry(capsys, "admin", "config", "get", "--help").out
