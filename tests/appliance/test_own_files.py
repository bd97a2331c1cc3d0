"""What an installation is told to do for a package more: what changes this installation, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from appliance import own_files


def test_a_checkout_and_wheels_are_told_their_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "`deploy/extra redis`" in own_files.how_to_add("redis")
    monkeypatch.setattr(own_files, "ROOT", tmp_path)
    assert "`pip install 'gantrymq-appliance[redis]'`" in own_files.how_to_add("redis")


@pytest.mark.parametrize("is_debian", [True, False])
def test_the_single_file_and_the_package_are_told_that_they_can_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_debian: bool
) -> None:
    mark = tmp_path / ("reports.folder" if is_debian else own_files.FACTS)
    mark.touch()
    monkeypatch.setattr(own_files, "ROOT", tmp_path)
    monkeypatch.setattr(own_files, "REPORTS_FOLDER", tmp_path / "reports.folder")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "can't have it" in own_files.how_to_add("redis") and "pip" not in own_files.how_to_add("redis")
