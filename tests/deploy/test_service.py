"""The Debian package: its unit, its scripts, and that it is installed, serves, is upgraded and purged in a bare root.

The package is the one in dist/: deploy/build-deb makes it, and .ci/run calls that.
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
from gantrymq import Message, SendStatus, SyncAdminClient, SyncProducer
from gantrymq import __version__ as VERSION
from gantrymq.remoting.admin_bodies import TopicConfig
from tests.appliance_process import RunningAppliance
from tests.conftest import missing, require_tool
from tests.deploy.bare_root import BareRoot
from tests.docs.shell_lines import LINES
from tests.visitor import Visitor

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "deploy" / "service" / "gantrymq.service"
SETTINGS = ROOT / "deploy" / "service" / "gantry.toml"
SCRIPTS = sorted(path for path in (ROOT / "deploy" / "debian").iterdir() if path.name.startswith(("post", "pre")))

PACKAGE = f"dist/gantrymq_{VERSION}-1_amd64.deb"
TOPIC = "Packaged"
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
        missing("a systemd-analyze that rates a file", told.strip()[-200:])
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
    assert f"apt install ./{PACKAGE}" == INSTALL


def test_what_the_page_installs_for_reports_is_what_the_package_suggests() -> None:
    control = (ROOT / "deploy" / "debian" / "control").read_text()
    (suggested,) = re.findall(r"^Suggests: (.+)$", control, re.MULTILINE)
    assert sorted(suggested.split(", ")) == sorted(FOR_REPORTS.split()[2:])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_page_installs_what_reports_need(tmp_path: Path) -> None:
    """From Debian's mirror, into a bare root: no more than they depend on."""
    bare = BareRoot(tmp_path / "bare", "apt", "python3")
    for name in ("etc/apt", "var/lib/apt/lists"):
        shutil.copytree(f"/{name}", bare.path / name, symlinks=True, dirs_exist_ok=True)
    (bare.path / "var/cache/apt/archives/partial").mkdir(parents=True, exist_ok=True)
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copy(f"/{name}", bare.path / name)
    if not list(bare.path.glob("var/lib/apt/lists/*Packages*")):
        missing("a list of Debian's packages", "apt-get update fetches it")
    bare.run(*FOR_REPORTS.split(), "--yes", "--no-install-recommends")
    assert bare.run("python3", "-m", "pip", "--version").startswith("pip ")
    assert "jvm" in bare.run("readlink", "--canonicalize-existing", "/usr/bin/java")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_lintian_finds_nothing_and_each_override_is_needed(package: Path) -> None:
    require_tool("lintian", "it knows what a Debian package has to be")
    command = ["lintian", "--allow-root", "--fail-on=error,warning", "--display-info", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if "-override " in line] == []


@pytest.fixture(scope="module")
def package() -> Path:
    """Only one of these sources: an older one fails for what has been repaired since."""
    if not (ROOT / PACKAGE).exists():
        missing("the Debian package", "deploy/build-deb makes it")
    if newer := newer_than(ROOT / PACKAGE):
        missing("a package of these sources", f"{newer[0]} is newer than the one there; deploy/build-deb makes it")
    return ROOT / PACKAGE


def newer_than(file: Path) -> list[Path]:
    """What has been changed, of all in the checkout that a package could be made of."""
    listed = subprocess.run(["git", "ls-files", "-z", ":!tests"], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = (ROOT / name for name in listed.stdout.rstrip("\0").split("\0"))
    return [path for path in paths if path.exists() and path.stat().st_mtime > file.stat().st_mtime]


def test_a_package_of_older_sources_is_known(tmp_path: Path) -> None:
    file = tmp_path / "package"
    file.touch()
    changed = SETTINGS.stat().st_mtime
    for made, is_older in (changed + 1, False), (changed - 1, True):
        os.utime(file, (made, made))
        assert (SETTINGS in newer_than(file)) is is_older


@pytest.fixture(scope="module")
def root(package: Path, tmp_path_factory: pytest.TempPathFactory) -> BareRoot:
    """With the package's file where its page has it, and with no more than it depends on."""
    (depends,) = re.findall(r"^Depends: (.+)$", (ROOT / "deploy/debian/control").read_text(), re.MULTILINE)
    bare = BareRoot(tmp_path_factory.mktemp("bare"), "apt", *(words.split()[0] for words in depends.split(", ")))
    (bare.path / "dist").mkdir()
    shutil.copy(package, bare.path / PACKAGE)
    return bare


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_package_is_installed_serves_and_is_upgraded_removed_and_purged(root: BareRoot) -> None:
    data, settings = root.path / "var/lib/gantrymq", root.path / "etc/gantrymq/gantry.toml"
    root.run(*INSTALL.split(), "--yes", "--no-install-recommends")
    assert "fast path: on" in root.run("gantry", "version")
    assert (data.stat().st_mode & 0o777, settings.stat().st_mode & 0o777) == (0o700, 0o640)
    assert serves_as_its_user(root, data) == 1
    settings.write_text(settings.read_text() + "http_port = 8081\n")
    root.run("dpkg", "--force-confold", "--install", f"/{later_version(root)}")
    assert root.run("dpkg-query", "--show", "--showformat=${Version}", "gantrymq") == f"{VERSION}-2"
    assert "http_port = 8081" in settings.read_text()
    assert serves_as_its_user(root, data) == 2  # with the message of before
    root.run("dpkg", "--remove", "gantrymq")
    assert (data / "brokers").exists() and settings.exists() and not (root.path / "usr/lib/gantrymq").exists()
    root.run("dpkg", "--purge", "gantrymq")
    assert not data.exists() and not settings.exists()
    assert "gantrymq" not in (root.path / "etc/passwd").read_text()


def serves_as_its_user(root: BareRoot, data: Path) -> int:
    """Start what the unit starts, open the log-in page, send a message. Returns how many messages there are then."""
    start = unit()["ExecStart"].partition(" --data ")[0]
    drop = "setpriv --reuid=gantrymq --regid=gantrymq --clear-groups"
    script = f'chown -R gantrymq: /var/lib/gantrymq; exec {drop} {start} "$@"'
    with RunningAppliance(data, command=root.command("sh", "-c", script, "sh")) as gantry:
        assert {process.uids().real for process in gantry.workers()} == {data.stat().st_uid} != {0}
        assert "GantryMQ" in Visitor(gantry.url).get("/login").text
        with SyncAdminClient(gantry.namesrv) as admin, SyncProducer(gantry.namesrv) as producer:
            admin.topics.create(TopicConfig(TOPIC, read_queue_nums=1, write_queue_nums=1))
            assert producer.send(Message(TOPIC, b"a message")).status is SendStatus.SEND_OK
            (address,) = admin.cluster.masters().values()
            return admin.offsets.max_at(address, TOPIC, 0)


def later_version(root: BareRoot) -> str:
    """The same files in a package that is newer to dpkg."""
    work = root.path / "later"
    subprocess.run(["dpkg-deb", "--raw-extract", root.path / PACKAGE, work], check=True)
    control = work / "DEBIAN/control"
    control.write_text(control.read_text().replace(f"Version: {VERSION}-1\n", f"Version: {VERSION}-2\n"))
    subprocess.run(["dpkg-deb", "-Znone", "--build", work, root.path / "dist/later.deb"], check=True)
    return "dist/later.deb"
