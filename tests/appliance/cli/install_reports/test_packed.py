"""Reports from a file: a real one, of a lock that is made up here, installed beside a tree by pip without an index."""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from appliance.cli.install_reports import installer, main
from appliance.cli.install_reports.packed import NOTE
from appliance.reports import install_state
from deploy.build_reports import build

WHEEL, SOURCE = "made-up-wheel", "made-up-source"
PYTHON = "{}.{}".format(*sys.version_info)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an index would have of two packages: of one a wheel, of the other its source."""
    folder = tmp_path_factory.mktemp("packages")
    for name, form in ((WHEEL, "--wheel"), (SOURCE, "--sdist")):
        project = folder / name
        module = project / name.replace("-", "_")
        module.mkdir(parents=True)
        (module / "__init__.py").write_text(f"NAME = {name!r}\n")
        (project / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "1.0"\n[build-system]\nrequires = []\n'
            f'build-backend = "setuptools.build_meta"\n[tool.setuptools]\npackages = ["{module.name}"]\n'
        )
        command = [sys.executable, "-P", "-m", "build", form, "--no-isolation", "--outdir", str(folder), str(project)]
        subprocess.run(command, capture_output=True, check=True)
    return folder


@pytest.fixture(scope="module")
def lock(packages: Path) -> Path:
    lines = []
    for path in sorted((*packages.glob("*.whl"), *packages.glob("*.tar.gz"))):
        name = path.name.partition("-")[0].replace("_", "-")
        lines.append(f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
    lock = packages / "reports.lock"
    lock.write_text("".join(lines))
    return lock


@pytest.fixture(scope="module")
def file(packages: Path, lock: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As deploy/build-reports makes it. pip's isolated build would fetch what builds the source."""
    folder = tmp_path_factory.mktemp("dist")
    return build(sys.executable, ["--no-index", f"--find-links={packages}", "--no-build-isolation"], lock, folder)


@pytest.fixture
def target(lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the single file has its packages."""
    folder = tmp_path / "reports-of-the-tree"
    monkeypatch.setattr(installer, "packages_folder", lambda: folder)
    monkeypatch.setattr(main, "LOCK", lock)
    monkeypatch.setattr("signal.signal", lambda number, handler: None)  # this process is pytest
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.syspath_prepend(folder)
    return folder


def install(data: Path, file: Path) -> dict[str, str]:
    """The state afterwards."""
    code = main.run(argparse.Namespace(data=data, file=file))
    state: dict[str, str] = json.loads((data / "reports" / "install.json").read_text())
    assert code == (state["state"] == "failed")
    return state


def packed(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            item = tarfile.TarInfo(name)
            item.size = len(content)
            archive.addfile(item, io.BytesIO(content))
    return path


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {item.name: archive.extractfile(item).read() for item in archive}  # type: ignore[union-attr]


def test_a_file_is_installed_wheels_and_sources(
    target: Path, file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without pip's advice to root, who does as the page says."""
    assert install(tmp_path, file)["state"] == "ready"
    assert "WARNING" not in "".join(capfd.readouterr())
    done = subprocess.run(
        [sys.executable, "-c", "import made_up_wheel, made_up_source as s; print(made_up_wheel.NAME, s.NAME)"],
        cwd=target,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [WHEEL, SOURCE]
    assert not list(target.glob(f"{installer.WORK}*"))


def test_what_root_installs_the_account_of_the_service_can_read(target: Path, file: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)  # as the command has it
    try:
        assert install(tmp_path, file)["state"] == "ready"
    finally:
        os.umask(before)
    packages = [path for path in target.rglob("*") if path.name != ".lock"]
    assert not [path for path in (target, *packages) if not path.stat().st_mode & 0o004]
    assert not [path for path in (target, *packages) if path.is_dir() and not path.stat().st_mode & 0o001]


def test_the_same_lock_gives_the_same_bytes(file: Path, packages: Path, lock: Path, tmp_path: Path) -> None:
    options = ["--no-index", f"--find-links={packages}", "--no-build-isolation"]
    assert build(sys.executable, options, lock, tmp_path).read_bytes() == file.read_bytes()


def test_a_killed_installation_goes_on(target: Path, file: Path, tmp_path: Path) -> None:
    """Of a package that was being moved the metadata is not there yet, so it is installed anew."""
    (target / "made_up_wheel").mkdir(parents=True)
    (target / "made_up_wheel" / "half.py").touch()
    (target / f"{installer.WORK}left").mkdir()
    assert install(tmp_path, file)["state"] == "ready"
    assert not (target / "made_up_wheel" / "half.py").exists()
    assert not (target / f"{installer.WORK}left").exists()
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*.py")}
    assert install(tmp_path, file)["total"] == 0  # nothing is missing now
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*.py")} == before


def test_another_version_is_replaced(target: Path, file: Path, tmp_path: Path) -> None:
    old = target / "made_up_wheel-0.9.dist-info"
    old.mkdir(parents=True)
    (old / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-wheel\nVersion: 0.9\n")
    assert install(tmp_path, file)["state"] == "ready"
    assert [path.name for path in target.glob("made_up_wheel-*")] == ["made_up_wheel-1.0.dist-info"]


def test_a_changed_package_is_refused(target: Path, file: Path, tmp_path: Path) -> None:
    files = contents(file)
    (wheel,) = (name for name in files if name.endswith(".whl"))
    other = packed(tmp_path / "other.tar", **(files | {wheel: files[wheel] + b"more"}))
    error = install(tmp_path, other)["error"]
    assert "has no file of made-up-wheel==1.0 with a hash of the lock" in error
    assert not (target / "made_up_wheel").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        (b"no archive", "it is no tar archive"),
        ({"README": b"hello"}, "has no packages for reports"),
        ({NOTE: b"{}"}, "has no packages for reports"),
        (
            {"gantrymq-reports.json": b'{"gantrymq": "0.2.0", "python": "3.99"}'},
            f"for Python 3.99, and this is {PYTHON}",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(
    target: Path, tmp_path: Path, content: bytes | dict[str, bytes] | None, words: str
) -> None:
    path = tmp_path / "wrong.tar"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        packed(path, **content)
    assert words in install(tmp_path, path)["error"]
    assert not target.exists()


def test_a_file_that_was_copied_in_part_is_refused(target: Path, file: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.tar"
    part.write_bytes(file.read_bytes()[:3000])
    assert "is damaged" in install(tmp_path, part)["error"]
    assert not (target / "made_up_wheel").exists()


def test_two_at_a_time_are_not_mixed(target: Path, file: Path, tmp_path: Path) -> None:
    target.mkdir()
    with (target / ".lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert "Another process is installing" in install(tmp_path, file)["error"]
    assert install(tmp_path, file)["state"] == "ready"


def test_the_debian_package_names_a_folder_of_its_own(
    target: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "reports.folder"
    named.write_text(f"{tmp_path}/usr/local/lib/gantrymq/reports-3.11\n")
    monkeypatch.setattr(install_state, "REPORTS_FOLDER", named)
    folder = install_state.packages_folder()
    assert folder == tmp_path / "usr/local/lib/gantrymq/reports-3.11"
    monkeypatch.setattr(installer, "packages_folder", install_state.packages_folder)
    monkeypatch.syspath_prepend(folder)
    assert install(tmp_path, file)["state"] == "ready"
    assert (folder / "made_up_wheel").is_dir()
