"""The unit and the scripts of the Debian package.

By hand, as root, with a package built by deploy/build-deb and a bare root that GANTRY_TEST_DEB_ROOT names
(mmdebstrap --variant=minbase --include=python3,adduser bookworm ROOT): it is installed, upgraded and purged there.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from appliance.settings.appliance_config import ApplianceConfig
from gantrymq import __version__ as VERSION
from tests.conftest import require_tool
from tests.docs.shell_lines import LINES

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "service" / "gantrymq.service"
SETTINGS = ROOT / "deploy" / "service" / "gantry.toml"
SCRIPTS = sorted(path for path in (ROOT / "deploy" / "debian").iterdir() if path.name.startswith(("post", "pre")))

INSTALL, FOR_REPORTS = (line.command.removeprefix("sudo ") for line in LINES if line.command.startswith("sudo apt "))


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)  # some keys stand twice
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    return parser["Service"]


def test_the_unit_starts_the_settings_of_the_package_as_its_user() -> None:
    service = unit()
    assert service["ExecStart"] == "/usr/bin/gantry up --config /etc/gantrymq/gantry.toml --data /var/lib/gantrymq"
    assert (service["User"], service["StateDirectory"], service["Type"]) == ("gantrymq", "gantrymq", "notify")
    assert service["NoNewPrivileges"] == service["ProtectHome"] == "yes" and service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""


def test_systemd_reads_the_unit_and_finds_nothing(tmp_path: Path) -> None:
    """With a program that is here in the place of the package's."""
    require_tool("systemd-analyze", "it reads the unit as systemd does")
    here = tmp_path / UNIT.name
    here.write_text(UNIT.read_text().replace("/usr/bin/gantry ", "/bin/true "))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", here], capture_output=True, text=True, check=False)
    own = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert own == [], done.stderr


def test_systemd_rates_the_unit_as_well_confined() -> None:
    require_tool("systemd-analyze", "it rates the unit")
    command = ["systemd-analyze", "security", "--offline=true", str(UNIT)]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    level = re.search(r"exposure level for \S+: ([\d.]+)", told)
    if level is None:
        pytest.skip(f"this systemd-analyze rates no file: {told.strip()[-200:]}")
    assert float(level[1]) <= 2.0


def test_the_settings_are_understood(tmp_path: Path) -> None:
    assert tomllib.loads(SETTINGS.read_text()) == {"install_reports": False}
    assert not ApplianceConfig.load({"data": tmp_path}, config_file=SETTINGS).install_reports


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_one_that_a_shell_reads_and_stops_at_errors(script: Path) -> None:
    subprocess.run(["sh", "-n", str(script)], check=True)
    assert script.read_text().startswith("#!/bin/sh\nset -e\n")


@pytest.mark.parametrize(("is_enabled", "verb"), [(True, "enable"), (False, "update-state")])
def test_an_upgrade_enables_no_unit_that_was_disabled(tmp_path: Path, is_enabled: bool, verb: str) -> None:
    """With stand-ins for all programs of the script, which write down their words."""
    for name in ("adduser", "install", "chown", "chmod", "systemctl", "deb-systemd-invoke", "deb-systemd-helper"):
        answer = "" if is_enabled else 'case "$*" in *was-enabled*) exit 1 ;; esac'
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$SAID"\n{answer}\n')
        (tmp_path / name).chmod(0o755)
    said, script = tmp_path / "said", ROOT / "deploy" / "debian" / "postinst"
    subprocess.run(
        ["/bin/sh", script, "configure", "0.1.0-1"], env={"PATH": str(tmp_path), "SAID": str(said)}, check=True
    )
    asked = re.findall(r"^deb-systemd-helper (?!unmask|--quiet)(\S+)", said.read_text(), re.MULTILINE)
    assert asked == [verb]


def test_the_page_installs_the_package_of_this_version() -> None:
    assert f"apt install ./dist/gantrymq_{VERSION}-1_amd64.deb" == INSTALL


def test_what_reports_need_is_what_the_package_suggests_and_debian_has_it() -> None:
    control = (ROOT / "deploy" / "debian" / "control").read_text()
    (suggested,) = re.findall(r"^Suggests: (.+)$", control, re.MULTILINE)
    assert sorted(suggested.split(", ")) == sorted(FOR_REPORTS.split()[2:])
    if shutil.which("apt") is None:
        pytest.skip("apt is Debian's")
    command = ["apt-get", "--simulate", *FOR_REPORTS.split()[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Unable to locate package" in done.stderr:
        pytest.skip("apt has no lists of packages here: apt-get update fetches them")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif("GANTRY_TEST_DEB_ROOT" not in os.environ, reason="by hand: GANTRY_TEST_DEB_ROOT names a bare root")
def test_the_package_is_installed_upgraded_removed_and_purged() -> None:
    root = Path(os.environ["GANTRY_TEST_DEB_ROOT"])
    (package,) = (ROOT / "dist").glob("gantrymq_*.deb")
    (root / "dist").mkdir(exist_ok=True)
    shutil.copy(package, root / "dist")

    def run(*command: str) -> str:
        done = subprocess.run(["chroot", str(root), *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    data, settings = root / "var/lib/gantrymq", root / "etc/gantrymq/gantry.toml"
    run(*INSTALL.split(), "--yes", "--no-install-recommends")
    assert "fast path: on" in run("gantry", "version")
    assert (data.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o700, 0o640)
    (data / "mine").write_text("kept")
    settings.write_text(settings.read_text() + "http_port = 8081\n")
    run("dpkg", "--force-confold", "-i", f"/dist/{package.name}")
    assert (data / "mine").read_text() == "kept" and "http_port = 8081" in settings.read_text()
    run("dpkg", "-r", "gantrymq")
    assert (data / "mine").exists() and settings.exists() and not (root / "usr/lib/gantrymq").exists()
    run("dpkg", "-P", "gantrymq")
    assert not data.exists() and not settings.exists()
    assert "gantrymq" not in (root / "etc/passwd").read_text()
