"""Builds both wheels with the Python that runs it: `python -m deploy.build_wheels FOLDER`.

    gantrymq-V-py3-none-any.whl               the SDK, pure Python
    gantrymq_appliance-V-cp311-….whl          the appliance with its compiled fast path, for one minor version

Each is built in a copy, so that nothing is left in the checkout. The appliance's has files where a checkout has them
elsewhere: templates/ in dashboard/, deploy/locks/reports.lock in appliance/locks/, the site of docs/ in dashboard/site.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

from appliance.fast_path.build import ship
from deploy.binary.slimming import glibc_of, programs
from gantrymq import __version__

ROOT = Path(__file__).resolve().parent.parent
GROUPS = ("appliance", "postgresql", "redis", "reports")
OLDEST_MANYLINUX = 17  # of glibc 2; what asks for an older one is named so, too (PEP 600)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.mo", "shipped", "*.egg-info", "*.pyi")


def build_sdk(to: Path) -> Path:
    """Returns the wheel of `gantrymq`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("pyproject.toml", "LICENSE"):
            shutil.copy(ROOT / file, folder)
        for package in ("gantrymq", "store", "appliance", "dashboard"):  # all of them: what is chosen is in pyproject
            shutil.copytree(ROOT / package, folder / package, ignore=LEFT_OUT)
        return _build(folder, to)


def build_appliance(to: Path, site: Path) -> Path:
    """Returns the wheel of `gantrymq-appliance`. Raises Missing, CompileError: none is built without its fast path.

    site: what deploy/site made.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(ROOT / "deploy" / "appliance.toml", folder / "pyproject.toml")
        shutil.copy(ROOT / "LICENSE", folder)
        shutil.copy(ROOT / "appliance" / "README.md", folder)
        for package in ("store", "appliance", "dashboard"):
            shutil.copytree(ROOT / package, folder / package, ignore=LEFT_OUT)
        (folder / "gantrymq").mkdir()
        shutil.copy(ROOT / "gantrymq" / "__init__.py", folder / "gantrymq")  # for the version
        shutil.copytree(ROOT / "templates", folder / "dashboard" / "templates")
        shutil.copytree(site, folder / "dashboard" / "site")
        (folder / "appliance" / "locks").mkdir()
        shutil.copy(ROOT / "deploy" / "locks" / "reports.lock", folder / "appliance" / "locks")
        _write_requirements(folder / "requirements")
        ship(folder / "appliance" / "fast_path")
        return _build(folder, to, f"cp{sys.version_info.major}{sys.version_info.minor}")


def _write_requirements(folder: Path) -> None:
    """One file a group: setuptools reads nothing else."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    folder.mkdir()
    for name in GROUPS:
        needed = [*([f"gantrymq=={__version__}"] if name == "appliance" else []), *groups[name]]
        (folder / f"{name}.txt").write_text("\n".join(needed) + "\n")


def _build(folder: Path, to: Path, python: str = "") -> Path:
    """python: the tag of the one minor version it is for; empty for a pure one."""
    if python:
        (folder / "setup.cfg").write_text(f"[bdist_wheel]\npython_tag={python}\nplat_name={_platform_of(folder)}\n")
    out = folder / "out"
    command = [sys.executable, "-P", "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(f"building failed:\n{done.stdout}\n{done.stderr}")
    (built,) = out.glob("*.whl")
    to.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(built, to))


def _platform_of(folder: Path) -> str:
    """Every Linux whose glibc is as new as the compiled fast path asks for; an index takes no wheel for `linux`."""
    minor = max(OLDEST_MANYLINUX, *(glibc_of(path)[1] for path in programs(folder)))
    return f"manylinux_2_{minor}_{sysconfig.get_platform().removeprefix('linux-')}"


if __name__ == "__main__":
    out = Path(sys.argv[1])
    for wheel in (build_sdk(out), build_appliance(out, ROOT / "build" / "site")):
        print(wheel)
