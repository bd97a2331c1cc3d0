"""The set-up commands on a fresh clone, as on a machine that has Python, git and a package registry."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from gantrymq import Message, SyncProducer
from tests.appliance_process import START_CPU_S, RunningAppliance
from tests.conftest import missing, time_limit
from tests.docs.shell_lines import LINES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last commit of this checkout, and nothing else."""
    if not (ROOT / ".git").exists():
        missing("the git repository", "a fresh clone is what these tests start from")
    folder = tmp_path_factory.mktemp("clone") / "a folder with spaces"
    lines = [line.command for line in LINES if line.page == "README.md" and line.command.startswith(("git ", "cd "))]
    mine = {"<this repository>": shlex.quote(str(ROOT)), " gantrymq": f" {shlex.quote(folder.name)}"}
    for text, here in mine.items():
        lines = [line.replace(text, here) for line in lines]
    command = ["bash", "-ec", "\n".join([*lines, "pwd"])]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}\n"
    return folder


def test_one_command_installs_and_serves_and_the_next_start_is_quick(clone: Path, tmp_path: Path) -> None:
    command = (str(clone / "deploy" / "up"),)
    quick = installs_quickly(tmp_path)
    with RunningAppliance(tmp_path / "data", command=command, environment=quick) as gantry:
        assert gantry.started_s < time_limit(300), "README: five minutes"
        assert "Compiled in " in gantry.output or "without its compiled fast path" in gantry.output
        with SyncProducer(gantry.namesrv) as producer:
            assert producer.send(Message("demo", b"hello")).status.name == "SEND_OK"
        assert gantry.stop() == 0
    with RunningAppliance(tmp_path / "data", command=command, environment=quick) as gantry:
        assert "Installing" not in gantry.output
        assert "Compil" not in gantry.output
        assert gantry.cpu_s() < START_CPU_S
        assert gantry.stop() == 0
    assert not (clone / "data").exists()
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True)
    assert changes.stdout == ""


def test_what_few_settings_need_is_installed_beside_the_rest(clone: Path, tmp_path: Path) -> None:
    """Into what the first start made, where that test ran before."""
    quick = os.environ | installs_quickly(tmp_path)
    for line in (line.command for line in LINES if line.command.startswith("deploy/extra ")):
        subprocess.run(["bash", "-c", line], cwd=clone, env=quick, check=True)
    there = "import channels_redis, psycopg_pool, appliance, django"
    subprocess.run([clone / ".venv" / "bin" / "python", "-B", "-c", there], cwd=tmp_path, check=True)


def installs_quickly(folder: Path) -> dict[str, str]:
    """Variables for an install that compiles no faster than it has to: Python when it is imported, C without -O."""
    compiler = folder / "cc"
    compiler.write_text(f'#!/bin/sh\nexec {shutil.which("cc") or "gcc"} "$@" -O0\n')
    compiler.chmod(0o755)
    return {"PIP_NO_COMPILE": "1", "PYTHONDONTWRITEBYTECODE": "", "CC": str(compiler)}


def test_a_machine_without_a_fitting_python_is_told_what_to_do(clone: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "dirname", "rm", "cat"):
        (programs / name).symlink_to(shutil.which(name) or name)
    (programs / "python3").write_text("#!/bin/sh\nexit 1\n")  # any Python before 3.11
    (programs / "python3").chmod(0o755)
    fresh = tmp_path / "clone"
    shutil.copytree(clone / "deploy", fresh / "deploy")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON"} | {"PATH": str(programs)}
    command = [str(programs / "bash"), str(fresh / "deploy" / "up")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "Python 3.11 or newer was not found: install it" in result.stderr
    assert not (fresh / ".venv").exists()


@pytest.mark.parametrize(
    "script", ["deploy/up", "deploy/test", "deploy/lock", "deploy/site", "deploy/environment.sh", ".ci/run"]
)
def test_a_script_is_bash_that_parses(script: str) -> None:
    subprocess.run(["bash", "-n", str(ROOT / script)], check=True)
    if script != "deploy/environment.sh":
        assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize(
    ("script", "word", "code"),
    [
        ("build-wheels", "--help", 0),
        ("build-wheels", "no-such-python", 2),
        ("build-deb", "--help", 0),
        ("build-deb", "--other", 2),
    ],
)
def test_a_script_that_builds_nothing_removes_nothing(tmp_path: Path, script: str, word: str, code: int) -> None:
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    wheel = tmp_path / "dist" / "gantrymq-0.1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    command = [str(tmp_path / "deploy" / script), word]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == code and wheel.exists()
    assert (f"deploy/{script}" if word.startswith("-") else word) in result.stdout + result.stderr
    assert not (tmp_path / ".venv").exists()


def test_what_can_not_compile_the_fast_path_says_so_and_goes_on(clone: Path, tmp_path: Path) -> None:
    """A compiler is there, but no Cython is to be had; deploy/up stops at no error of these."""
    fresh = tmp_path / "clone"
    shutil.copytree(clone / "deploy", fresh / "deploy")
    python = fresh / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/sh\necho "asked: $*" >&2\ncase $* in *--look) exit 0 ;; esac\nexit 3\n')
    python.chmod(0o755)
    commands = (
        f"set -euo pipefail; . '{fresh}/deploy/environment.sh'; have_uv() {{ false; }}; compile_fast_path; echo on"
    )
    result = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=True)
    assert result.stdout == "on\n"
    assert "Cython could not be installed" in result.stderr
    assert "asked: -P -m appliance.fast_path.build" in result.stderr
    assert not (fresh / ".venv" / "installed-fast-path.lock").exists()
    environment = {**os.environ, "GANTRY_FAST_PATH": "off"}
    result = subprocess.run(["bash", "-c", commands], env=environment, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("on\n", "")


def run_with(fresh: Path, commands: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run what deploy/environment.sh has, with pip even where uv is."""
    script = f"set -euo pipefail; . '{fresh}/deploy/environment.sh'; have_uv() {{ false; }}; {commands}"
    environment = {**os.environ, **variables}
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fresh(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clone's scripts and what they run, nothing installed."""
    folder = tmp_path_factory.mktemp("fresh")
    for name in ("deploy", "appliance", "gantrymq", "store"):
        shutil.copytree(clone / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def bare(fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a Python environment that has nothing but pip."""
    folder = tmp_path_factory.mktemp("bare") / "clone"
    shutil.copytree(fresh, folder)
    subprocess.run([sys.executable, "-m", "venv", str(folder / ".venv")], check=True)
    return folder


def installed(fresh: Path) -> set[str]:
    """The folders of the packages in the environment."""
    (packages,) = (fresh / ".venv" / "lib").glob("python3*/site-packages")
    return {path.name.lower() for path in packages.iterdir() if path.suffix != ".dist-info"}


def test_without_a_compiler_no_cython_is_installed(bare: Path) -> None:
    result = run_with(bare, "link_checkout; compile_fast_path; echo on", CC="no-such-compiler")
    assert result.stdout == "on\n", result.stderr
    (sentence,) = result.stderr.splitlines()
    assert "without its compiled fast path" in sentence and "no-such-compiler, is missing" in sentence
    assert "cython" not in installed(bare)


@pytest.mark.parametrize(
    ("index", "why"),
    [("https://no-such-host.invalid/simple", "Name or service not known"), ("CLOSED", "Connection refused")],
)
def test_a_first_start_without_network_says_so(bare: Path, index: str, why: str) -> None:
    with socket.socket() as closed:  # bound, but not listened at
        closed.bind(("127.0.0.1", 0))
        index = index.replace("CLOSED", f"http://user:secret@127.0.0.1:{closed.getsockname()[1]}/simple")
        proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "PIP_FIND_LINKS"), "")
        result = run_with(bare, "install_lock appliance", PIP_INDEX_URL=index, **proxies)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Packages could not be installed: http") and why in last and "needs the network" in last
    assert "secret" not in last
    assert not (bare / ".venv" / "installed-appliance.lock").exists()


def test_an_index_out_of_reach_is_not_waited_for_where_packages_are_in_a_folder(bare: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "alone-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("alone.py", "")
        archive.writestr("alone-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: alone\nVersion: 1.0\n")
        archive.writestr("alone-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("alone-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (bare / "deploy" / "locks" / "alone.lock").write_text(f"alone==1.0 --hash=sha256:{digest}\n")
    variables = {"PIP_INDEX_URL": "https://no-such-host.invalid/simple", "PIP_FIND_LINKS": str(tmp_path)}
    result = run_with(bare, "install_lock alone", **variables, PIP_NO_INDEX="1")
    assert result.returncode == 0, result.stderr
    assert "alone.py" in installed(bare)


@pytest.mark.parametrize(
    ("options", "variables", "is_refused"),
    [
        ((), {}, True),
        (("--http-port", "8081"), {}, True),
        (("--allow-root",), {}, False),
        (("--user", "nobody"), {}, False),
        (("--help",), {}, False),
        ((), {"GANTRY_ALLOW_ROOT": "true"}, False),
    ],
)
def test_root_is_refused_before_anything_is_installed(
    fresh: Path, options: tuple[str, ...], variables: dict[str, str], is_refused: bool
) -> None:
    if os.geteuid() != 0:
        missing("root", "only root is refused")
    result = run_with(fresh, f"refuse_root {' '.join(options)}; echo installs", **variables)
    assert (result.stdout, result.returncode) == (("", 1) if is_refused else ("installs\n", 0)), result.stderr
    assert ("name one with --user NAME, or use --allow-root" in result.stderr) == is_refused
    assert not list(fresh.rglob("__pycache__"))


def test_root_is_refused_by_the_first_start_itself(fresh: Path) -> None:
    if os.geteuid() != 0:
        missing("root", "only root is refused")
    result = subprocess.run([str(fresh / "deploy" / "up")], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Nothing was installed." in result.stderr and "Installing" not in result.stderr
    assert not (fresh / ".venv").exists()
