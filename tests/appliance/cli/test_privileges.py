"""Root becomes somebody else, or is refused."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.cli.privileges import drop_privileges
from appliance.own_files import ROOT
from appliance.settings.appliance_config import ApplianceConfig
from gantrymq.errors import ConfigError

OTHER = "nobody"
BECOME = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from appliance.settings.appliance_config import ApplianceConfig
from appliance.cli.privileges import drop_privileges
drop_privileges(ApplianceConfig(data=Path(sys.argv[1]), user=sys.argv[2]), [Path("/")])
print(*os.getresuid(), *os.getresgid(), os.environ["USER"])
try:
    os.setuid(0)
except PermissionError:
    print("for good")
"""


def reachable(folder: Path) -> Path:
    """A folder of a test that another account may look into: only the way to it is opened."""
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.geteuid() and not parent.stat().st_mode & stat.S_IXOTH:
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    return folder


def test_s06_root_becomes_the_account_for_good_and_the_folder_is_its_own(tmp_path: Path) -> None:
    data, account = reachable(tmp_path) / "data", pwd.getpwnam(OTHER)
    command = [sys.executable, "-c", BECOME, str(data), OTHER, str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if os.geteuid() != 0:
        assert "only root can switch accounts" in result.stderr
        return
    numbers = " ".join([str(account.pw_uid)] * 3 + [str(account.pw_gid)] * 3)
    assert result.stdout == f"{numbers} {OTHER}\nfor good\n", result.stderr
    assert (data.stat().st_uid, stat.S_IMODE(data.stat().st_mode)) == (account.pw_uid, 0o700)


def test_who_it_is_already_need_not_become_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: pwd.getpwnam(OTHER).pw_uid)
    drop_privileges(ApplianceConfig(data=tmp_path / "data", user=OTHER))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("no-such-account-here", "there is no such account"),
        ("0", "is root: name"),
        (OTHER, "belongs to another account; change that with `chown -R nobody: '"),
    ],
)
def test_what_can_not_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, words: str) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    data = tmp_path / "my data"
    data.mkdir()
    with pytest.raises(ConfigError) as caught:
        drop_privileges(ApplianceConfig(data=data, user=user))
    assert words in str(caught.value)


def test_s06_gantry_up_as_root_is_refused_before_it_writes_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "appliance", "up", "--data", str(tmp_path / "data"), "--user", "no-such-one"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (result.returncode, (tmp_path / "data").exists()) == (2, False)
    assert result.stderr.startswith("gantry up: user=no-such-one: there is no such account")
    if os.geteuid() == 0:
        result = subprocess.run(command[:-2], env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert "name one with --user NAME, or use --allow-root" in result.stderr
