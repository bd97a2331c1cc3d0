"""A user without a home, as containers have them, can use all of it."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from gantrymq.home import home_folder


def test_the_working_folder_stands_for_a_home_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert home_folder() == tmp_path / "home"
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.chdir(tmp_path)
    assert home_folder() == tmp_path
