"""appliance/process/file_tail.py: the end of a file as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.process.file_tail import read_tail


@pytest.mark.parametrize(("bytes_max", "text"), [(100, "one\ntwö\n"), (5, "twö\n"), (2, "\ufffd\n"), (0, "")])
def test_the_last_bytes_are_read_as_text(tmp_path: Path, bytes_max: int, text: str) -> None:
    (tmp_path / "log").write_text("one\ntwö\n", encoding="utf-8")
    assert read_tail(tmp_path / "log", bytes_max) == text


def test_a_file_that_is_not_there_has_said_nothing(tmp_path: Path) -> None:
    assert read_tail(tmp_path / "log", 100) == ""
