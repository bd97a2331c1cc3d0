"""The gantry command: every command explains itself, mistakes are one sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from appliance.__main__ import main
from appliance.cli.commands import COMMANDS
from appliance.own_files import ROOT
from gantrymq import __version__


def test_the_version_is_that_of_the_sdk(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"GantryMQ {__version__}, Python ")
    assert second.startswith(("fast path: on (Cython ", "fast path: off ("))


def test_the_version_says_why_the_fast_path_is_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTRY_FAST_PATH", "off")
    assert main(["--version"]) == 0
    assert "fast path: off (GANTRY_FAST_PATH=off)" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    assert f"usage: gantry {command}" in capsys.readouterr().out


def test_an_unknown_command_is_a_mistake_of_use(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["uo"])
    assert caught.value.code == 2
    assert "there is no command 'uo'; known: up, namesrv" in capsys.readouterr().err


def test_a_wrong_setting_is_one_sentence_and_no_traceback() -> None:
    command = [sys.executable, "-m", "appliance", "up", "--http-port", "70000"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr == "gantry up: http_port=70000: use a number from 0 to 65535\n"
