"""deploy/commit-message: which messages pass, and what the others are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def check(tmp_path: Path, message: str) -> tuple[int, str]:
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message)
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/commit-message"), str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "message",
    [
        "Cut the scan into steps\n\nEach step states what holds before it.\n",
        "Cut the scan into steps\n\nWhy.\n# Please enter the commit message\n",
        "fixup! cut the scan\n",
        "Revert \"Cut the scan into steps\"\n",
        "x".upper() * 60 + "\n\nWhy.\n",
    ],
)  # fmt: skip
def test_a_good_message_passes(tmp_path: Path, message: str) -> None:
    assert check(tmp_path, message) == (0, "")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("X" * 61 + "\n\nWhy.\n", "the subject has 61 characters; at most 60"),
        ("Cut the scan\n", "the body says why"),
        ("Cut the scan\n\n# only a comment\n", "the body says why"),
        ("Cut the scan\nWhy.\n", "an empty line separates"),
        ("cut the scan\n\nWhy.\n", "capital letter"),
        ("Cut the scan.\n\nWhy.\n", "without a full stop"),
        ("", "capital letter"),
    ],
)
def test_a_bad_message_is_told_what_is_wrong(tmp_path: Path, message: str, told: str) -> None:
    status, output = check(tmp_path, message)
    assert status == 1
    assert told in output
