"""Puts the packages of deploy/locks/reports.lock into one file, from which `gantry install-reports --from` takes them.

They are the index's own files with the lock's hashes, so an installation need not trust the file. The same bytes
each time.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from appliance.cli.install_reports.locked import Locked, locked_packages
from appliance.cli.install_reports.packed import NOTE, note_of
from deploy.binary.interpreter import foreign_wheels, own_pip, python_of, tree_with_packages
from deploy.binary.kept import CACHE, Kept
from deploy.binary.parts import BuildError, read_lock, run
from deploy.lock_file import LOCKS
from gantrymq import __version__

ROOT = Path(__file__).resolve().parents[1]
LOCK = LOCKS / "reports.lock"


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/build-reports", description="Pack what reports need.")
    parser.add_argument("--python", metavar="PYTHON", help="which runs the appliance (default: the single file's)")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR", help="default: dist")
    given = parser.parse_args()
    try:
        if given.python:
            print(build(given.python, [], LOCK, given.output.absolute()))
        else:
            kept = Kept(CACHE)
            with kept.alone():
                tree = tree_with_packages(kept, read_lock())
                print(build(str(python_of(tree)), foreign_wheels(tree), LOCK, given.output.absolute()))
    except BuildError as exc:
        print(f"deploy/build-reports: {exc}", file=sys.stderr)
        return 1
    return 0


def build(python: str, wheels: list[str], lock: Path, output: Path) -> Path:
    """Returns the file. wheels: options of pip for those to take, when not this machine's. Raises BuildError."""
    full_version = run([python, "-P", "-c", "import platform; print(platform.python_version())"]).strip()
    version = ".".join(full_version.split(".")[:2])
    output.mkdir(parents=True, exist_ok=True)
    to = output / f"gantrymq-reports-{__version__}-python{version}-{sysconfig.get_platform()}.tar"
    with tempfile.TemporaryDirectory(dir=output) as name:
        folder = Path(name)
        for package in locked_packages(lock, {"python_version": version, "python_full_version": full_version}):
            _fetch(python, wheels, package, folder)
        new = to.with_name(to.name + ".new")
        _pack(note_of(__version__, version), sorted(folder.iterdir()), new)
        new.replace(to)
    return to


def _fetch(python: str, wheels: list[str], package: Locked, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        requirements = Path(name) / "requirements.txt"
        requirements.write_text(package.block, encoding="utf-8")
        run(
            [python, "-P", own_pip(), "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
             "--no-deps", "--require-hashes", *wheels, "--dest", folder, "-r", requirements],
            PYTHONDONTWRITEBYTECODE="1",
        )  # fmt: skip


def _pack(note: bytes, files: list[Path], to: Path) -> None:
    """Not compressed: wheels are."""
    date = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    with tarfile.open(to, "w", format=tarfile.PAX_FORMAT) as archive:
        head = tarfile.TarInfo(NOTE)
        head.size, head.mtime = len(note), date
        archive.addfile(head, io.BytesIO(note))
        for path in files:
            item = tarfile.TarInfo(path.name)
            item.size, item.mtime, item.mode = path.stat().st_size, date, 0o644
            with path.open("rb") as file:
                archive.addfile(item, file)


if __name__ == "__main__":
    sys.exit(main())
