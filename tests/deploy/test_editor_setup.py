"""What editors and pre-commit read: well-formed, and every command and file in it is there."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
HOOKS: list[dict[str, Any]] = [
    hook for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"] for hook in repo["hooks"]
]
TASKS: list[dict[str, Any]] = json.loads((ROOT / ".vscode/tasks.json").read_text())["tasks"]


def is_there(word: str) -> bool:
    """A program of the checkout or of its .venv; `.venv` itself may stand elsewhere when tests run."""
    if word.startswith(".venv/bin/"):
        return shutil.which(word.removeprefix(".venv/bin/"), path=str(Path(sys.executable).parent)) is not None
    return (ROOT / word).exists()


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_runs_programs_and_files_of_the_checkout(hook: dict[str, Any]) -> None:
    assert hook["language"] == "system"
    words = hook["entry"].split()
    missing = [word for word in words if "/" in word and not is_there(word)]
    assert is_there(words[0])
    assert missing == []


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["label"])
def test_a_task_runs_programs_of_the_checkout(task: dict[str, Any]) -> None:
    programs = [part.split()[0] for part in task["command"].split("&&")]
    assert [program for program in programs if not is_there(program)] == []
    modules = re.findall(r"-m ([\w.]+)", task["command"])
    assert [name for name in modules if not (ROOT / (name.replace(".", "/") + ".py")).is_file()] == []


@pytest.mark.parametrize("name", ["settings", "extensions"])
def test_the_editors_settings_are_json(name: str) -> None:
    assert json.loads((ROOT / f".vscode/{name}.json").read_text())


def test_the_editor_is_told_the_line_length_of_the_formatter() -> None:
    wanted = re.search(r"^line-length = (\d+)", (ROOT / "pyproject.toml").read_text(), re.M)
    told = re.search(r"^max_line_length = (\d+)", (ROOT / ".editorconfig").read_text(), re.M)
    assert wanted and told
    assert wanted[1] == told[1]
