"""The data folder: private, its secrets made once, one appliance at a time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from appliance.own_files import ROOT
from appliance.process.data_folder import DataFolderInUse, DataFolderLock, ensure_secret, lay_out
from appliance.settings.appliance_config import ApplianceConfig


def test_folder_and_secret_belong_to_their_owner_alone(tmp_path: Path) -> None:
    config = ApplianceConfig(data=tmp_path / "data")
    lay_out(config)
    secret = config.dashboard_folder / "secret_key"
    assert (config.data.stat().st_mode & 0o777, secret.stat().st_mode & 0o777) == (0o700, 0o600)
    assert len(secret.read_text().strip()) >= 50


def test_a_secret_is_made_once_even_when_many_ask_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(lambda _: ensure_secret(tmp_path / "folder" / "secret"), range(50)))
    assert len(secrets) == 1
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["secret"]


def test_a_second_appliance_is_kept_out_and_told_who_is_in(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from appliance.process.data_folder import DataFolderLock\n"
        "lock = DataFolderLock(Path(sys.argv[1])); lock.acquire(); print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataFolderInUse) as caught:
            DataFolderLock(tmp_path).acquire()
        assert caught.value.pid == holder.pid
        holder.kill()
        holder.wait()
        lock = DataFolderLock(tmp_path)  # a lock does not outlive its holder
        lock.acquire()
        lock.release()
