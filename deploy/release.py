"""Makes what is published of a version: wheels, package, single file, reports, documentation, bill of materials, notes.

Everything is built in a clone of the last commit, so that no stray file gets in; a checkout with changes is refused,
because then the commit is not what was tested. The dates in the artefacts are the commit's.

    FOLDER/gantrymq-V-….whl  gantrymq_appliance-V-….whl  gantrymq_V-1_….deb  gantry-V-linux-x86_64
    FOLDER/gantrymq-reports-V-….tar  gantrymq-docs-V.tar.gz  gantrymq-V.cdx.json  NOTES.md  SHA256SUMS
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from gantrymq import __version__ as VERSION

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
UNRELEASED = "Unreleased"


class Refused(Exception):
    """There will be no release; the text says why, and what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy/release", description="Build what is published of a version.")
    folder = ROOT / "dist" / f"release-{VERSION}"
    parser.add_argument("--output", type=Path, default=folder, help=f"default: {folder.relative_to(ROOT)}")
    parser.add_argument("--tag", action="store_true", help=f"then tag the commit v{VERSION}; nothing is pushed")
    parser.add_argument(
        "--python", action="append", default=[], help="a Python to make the appliance's wheel for, too; again for more"
    )
    given = parser.parse_args()
    try:
        changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        check(_git("status", "--porcelain"), changes, tags=_git("tag", "--list").split(), to_tag=given.tag)
        check_output(given.output)
        commit = _git("rev-parse", "HEAD").strip()
        if given.tag:
            _git("var", "GIT_COMMITTER_IDENT")  # without a name there is no tag; say so before all is built
        build(given.output.absolute(), notes(changes), commands(given.python), commit)
        if given.tag:
            words = ("--file", str(given.output / "NOTES.md"), "--cleanup=verbatim")
            _git("tag", "--annotate", f"v{VERSION}", *words, commit)
            print(f"tagged v{VERSION}; publish it with git push origin v{VERSION}")
    except Refused as exc:
        print(f"deploy/release: {exc}", file=sys.stderr)
        return 1
    return 0


def check(status: str, changes: str, *, tags: list[str], to_tag: bool) -> None:
    """Raises Refused for a checkout of which no release can be made. status: as `git status --porcelain` prints it."""
    if status:
        raise Refused(f"the checkout has changes; commit or remove them:\n{status}")
    notes(changes)
    if f"v{VERSION}" in tags:
        raise Refused(f"v{VERSION} is tagged already; the next version goes into gantrymq/__init__.py")
    if to_tag and VERSION not in _sections(changes):
        raise Refused(f"CHANGELOG.md has no section {VERSION}; rename “{UNRELEASED}” and commit that")
    if to_tag and _sections(changes).get(UNRELEASED):
        raise Refused(
            f"CHANGELOG.md has entries under “{UNRELEASED}”, which the notes of {VERSION} would lack; move them to its "
            "section, or make them a version"
        )


def check_output(folder: Path) -> None:
    """Raises Refused for a folder with files that are no release's: it is emptied."""
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    listed = (folder / SUMS).read_text(encoding="utf-8").splitlines() if SUMS in found else []
    if strays := sorted(found - {SUMS} - {line.partition("  ")[2] for line in listed}):
        raise Refused(f"{folder} has files that are no release's ({strays[0]}); name an empty folder")


def notes(changes: str) -> str:
    """The release notes: the section of this version, or what is not released yet. Raises Refused without one."""
    sections = _sections(changes)
    text = sections.get(VERSION) or sections.get(UNRELEASED, "")
    if not text:
        raise Refused(f"CHANGELOG.md has neither a section {VERSION} nor “{UNRELEASED}”")
    return f"# GantryMQ {VERSION}\n\n{text}\n"


def _sections(changes: str) -> dict[str, str]:
    """Heading to text."""
    parts = re.split(r"^## (.+)$", changes, flags=re.MULTILINE)
    return {heading.strip(): text.strip() for heading, text in zip(parts[1::2], parts[2::2], strict=True)}


def commands(pythons: list[str]) -> list[list[str]]:
    """What makes dist/: build-deb makes the site and wheels for Debian's Python, which build-wheels makes again."""
    more = [["build-wheels", "/usr/bin/python3", *pythons]] if pythons else []
    return [["build-deb"], *more, ["build-binary"], ["build-reports"]]


def build(output: Path, text: str, scripts: list[list[str]], commit: str) -> None:
    """Fill the folder anew, once everything of the commit is built. Raises Refused when a part can't be built."""
    with tempfile.TemporaryDirectory(prefix="gantry-release-") as name:
        tree, made = Path(name) / "tree", Path(name) / "release"
        _run(ROOT, "git", "clone", "--quiet", "--no-tags", str(ROOT), str(tree))
        _run(tree, "git", "checkout", "--quiet", "--detach", commit)  # the last one may be another by now
        date = _git("log", "-1", "--format=%ct", commit).strip()
        for script, *words in scripts:
            _run(tree, str(tree / "deploy" / script), *words, SOURCE_DATE_EPOCH=date)
        made.mkdir()
        for built in sorted((tree / "dist").iterdir()):
            built.rename(made / (f"gantry-{VERSION}-linux-x86_64" if built.name == "gantry" else built.name))
        pack(tree / "build" / "site", made / f"gantrymq-docs-{VERSION}.tar.gz", int(date))
        bill = _run(tree, str(tree / "deploy" / "sbom"))
        (made / f"gantrymq-{VERSION}.cdx.json").write_text(bill, encoding="utf-8")
        (made / "NOTES.md").write_text(text, encoding="utf-8")
        (made / SUMS).write_text(sums(made), encoding="utf-8")
        print(sums(made), end="")
        if output.exists():
            check_output(output)  # once more: that was minutes ago
            shutil.rmtree(output)
        shutil.copytree(made, output)


def pack(site: Path, to: Path, date: int) -> None:
    """The site as an archive, the same bytes each time."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in site.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(f"gantrymq-docs-{VERSION}/{path.relative_to(site)}")
            entry.size, entry.mtime, entry.mode = path.stat().st_size, date, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    to.write_bytes(gzip.compress(data.getvalue(), mtime=0))


def sums(folder: Path) -> str:
    """What `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def _git(*words: str) -> str:
    return _run(ROOT, "git", *words)


def _run(folder: Path, *command: str, **variables: str) -> str:
    """What it prints. Raises Refused with its last words."""
    print(f"== {' '.join(command)}", file=sys.stderr, flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(command, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False)
    if done.returncode:
        words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-20:])
        raise Refused(f"{' '.join(command)} failed with {done.returncode}:\n{words}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
