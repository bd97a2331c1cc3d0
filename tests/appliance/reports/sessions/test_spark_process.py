"""Whether a process is given another run after one that failed."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from appliance.reports.java import Java
from appliance.reports.runs import RunFolder, new_run_id, new_work_folder
from appliance.reports.sessions.class_archive import ClassArchive
from appliance.reports.sessions.spark_process import ENDING, SessionSettings, SparkProcess
from tests.waiting import WITHIN_S


@pytest.mark.parametrize(("answer", "is_usable"), [("0", True), ("1", True), (f"1 {ENDING}", False)])
def test_a_process_whose_session_is_hurt_is_given_no_other_run_while_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, is_usable: bool
) -> None:
    child = tmp_path / "child"  # it answers one run and lives on, as a process does that takes long to end
    child.write_text(f"#!/bin/sh\nread settings\nread folder\necho {answer}\nread more\n")
    child.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(child))
    java = Java(tmp_path, 17, "the test")
    folder = RunFolder.in_data(tmp_path, new_run_id())
    folder.path.mkdir(parents=True)
    settings = SessionSettings(master="local[1]", driver_memory="1g")
    process = SparkProcess(new_work_folder(tmp_path), settings, java, ClassArchive(tmp_path / "jvm", java))
    with contextlib.closing(process):
        assert process.run(folder, WITHIN_S) == int(answer[0])
        assert process.is_usable is is_usable
