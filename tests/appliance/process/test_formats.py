"""Folders of a newer version: `gantry up`, a broker and a report refuse them in a sentence, and change nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cli.checks.folder import check_formats
from appliance.own_files import ROOT
from appliance.process.data_folder import lay_out
from appliance.process.formats import DATA, REPORTS
from appliance.settings.appliance_config import ApplianceConfig
from store.base.errors import NewerFormat
from store.startup.format_stamp import STAMP_NAME, STORE, FolderFormat, kept_folder, read_stamp, write_stamp

LOCKS = ("lock", "gantry.lock")  # taken, and let go


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name not in LOCKS
    }


def gantry(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "appliance", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def stamped_newer(folder: Path, known: FolderFormat) -> dict[str, bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    write_stamp(folder, known.number + 1, "9.0.0")
    return contents(folder)


def test_a_broker_refuses_a_newer_store(tmp_path: Path) -> None:
    before = stamped_newer(tmp_path / "store", STORE)
    (tmp_path / "broker.conf").write_text(f"storePathRootDir={tmp_path / 'store'}\nlistenPort=0\n")
    ended = gantry("broker", "-c", str(tmp_path / "broker.conf"))
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(f"gantry broker: {tmp_path / 'store'}: this store has format 2, ")
    assert "Traceback" not in ended.stderr
    assert contents(tmp_path / "store") == before


@pytest.mark.parametrize(("where", "known"), [("", DATA), ("brokers/broker-a/store", STORE)])
def test_s66_an_appliance_refuses_newer_data(tmp_path: Path, where: str, known: FolderFormat) -> None:
    before = stamped_newer(tmp_path / "data" / where, known)
    ended = gantry("up", "--data", str(tmp_path / "data"), "--no-install-reports")
    assert ended.returncode == 1
    assert f"this {known.name} has format 2, written by GantryMQ 9.0.0" in ended.stderr
    assert "Start that version or a newer one, or name another folder." in ended.stderr
    assert contents(tmp_path / "data" / where) == before
    if known is DATA:
        with pytest.raises(NewerFormat):
            lay_out(ApplianceConfig(data=tmp_path / "data"))


def test_reports_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    before = stamped_newer(tmp_path / "reports", REPORTS)
    ended = gantry("report", "traffic", "--data", str(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr.startswith(
        f"gantry report: {tmp_path / 'reports'}: this folder of reports has format {REPORTS.number + 1}"
    )
    assert contents(tmp_path / "reports") == before
    [finding] = check_formats(ApplianceConfig(data=tmp_path))
    assert not finding.is_fatal and f"reports has format {REPORTS.number + 1}" in finding.sentence


def test_an_unstamped_data_folder_is_stamped_and_what_a_start_rewrites_is_kept(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path / "data")
    old = {"dashboard/db.sqlite3": "old rows", "brokers/broker-a/broker.properties": "traceOn=true\n"}
    for name, text in old.items():
        path = config.data / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    lay_out(config)
    assert read_stamp(config.data).format == DATA.number
    assert {name: (kept_folder(config.data, 1) / name).read_text() for name in old} == old
    (config.data / "dashboard" / "db.sqlite3").write_text("new rows")
    lay_out(config)
    assert (kept_folder(config.data, 1) / "dashboard" / "db.sqlite3").read_text() == "old rows"
    lay_out(ApplianceConfig(data=tmp_path / "fresh"))
    assert (tmp_path / "fresh" / STAMP_NAME).exists() and not kept_folder(tmp_path / "fresh", 1).exists()
