"""Completion in real shells: what a TAB offers follows from the parsers alone."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cli.admin.main import NOUNS
from appliance.cli.commands import COMMANDS
from appliance.cli.completion import candidates
from appliance.own_files import ROOT
from tests.conftest import require_tool
from tests.waiting import WITHIN_S


def words(line: str) -> list[str]:
    return [word for word, _ in candidates(line.split(" "))]


def test_every_command_and_every_noun_is_offered() -> None:
    assert words("") == sorted(COMMANDS)
    assert words("admin ") == sorted(NOUNS)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("adm", ["admin"]),
        ("admin topics cr", ["create"]),
        ("admin -n 127.0.0.1:9876 --json topics cr", ["create"]),
        ("admin switchover broker-a --t", ["--timeout", "--tls", "--tls-cert", "--tls-key", "--tls-trust", "--to"]),
        ("up --allow-", ["--allow-open-network", "--allow-root"]),
        ("store re", ["repair"]),
        ("completion z", ["zsh"]),
        ("broker --log-level W", []),  # any word will do
        ("up --data ", []),  # a folder: the shell knows those
        ("nothing such ", []),
    ],
)
def test_the_next_words_are_those_of_the_parser_there(line: str, offered: list[str]) -> None:
    assert [word for word in words(line) if word in offered or not offered] == offered
    assert set(words(line)) >= set(offered)


def test_the_value_of_an_option_is_one_of_its_choices() -> None:
    assert words("ready w") == ["web"]
    assert words("admin clean qu") == ["queues"]


@pytest.fixture
def shell_path(tmp_path: Path) -> str:
    """A PATH with `gantry` in front."""
    command = tmp_path / "bin" / "gantry"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m appliance "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}:{os.environ['PATH']}"


def run(shell: list[str], script: str, path: str) -> list[str]:
    done = subprocess.run([*shell, "-c", script], capture_output=True, text=True, check=False, env={"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def test_bash_completes(shell_path: str) -> None:
    require_tool("bash", "completion runs in it")
    script = """
        source <(gantry completion bash)
        complete -p gantry
        COMP_LINE='gantry admin -n 127.0.0.1:9876 topics cr --json' COMP_POINT=40; _gantry; echo "${COMPREPLY[@]}"
        COMP_LINE='gantry admin topics ' COMP_POINT=${#COMP_LINE}; _gantry; echo "${COMPREPLY[@]}"
    """
    how, in_the_middle, verbs = run(["bash", "--norc"], script, shell_path)
    assert how == "complete -o default -F _gantry gantry"
    assert in_the_middle == "create"
    assert {"create", "list", "show"} <= set(verbs.split())


def test_fish_completes(shell_path: str) -> None:
    require_tool("fish", "completion runs in it")
    script = "gantry completion fish | source; complete -C 'gantry admin topics cr'"
    assert run(["fish", "--no-config"], script, shell_path) == ["create\tcreate a topic at every broker"]


def test_zsh_completes(shell_path: str, tmp_path: Path) -> None:
    """At a terminal of its own: its completion works nowhere else."""
    require_tool("zsh", "completion runs in it")
    rc = "autoload -Uz compinit && compinit -u -D && source <(gantry completion zsh)\nPROMPT='ready> '\n"
    (tmp_path / ".zshrc").write_text(rc)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("zsh", ["zsh", "-i"], {"PATH": shell_path, "ZDOTDIR": str(tmp_path), "TERM": "dumb"})
    try:
        read_until(terminal, rb"ready> ")
        os.write(terminal, b"gantry admin topics cr\t")
        read_until(terminal, rb"topics create ")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal: int, wanted: bytes) -> None:
    """Raises AssertionError with what came instead."""
    came = b""
    while not re.search(wanted, came):
        assert select.select([terminal], [], [], WITHIN_S)[0], came
        came += os.read(terminal, 4096)
