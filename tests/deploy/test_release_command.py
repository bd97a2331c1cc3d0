"""deploy/release in a checkout whose parts are built at once: what it leaves, tags, and does when something is wrong.

With the real parts it takes minutes and the network: `deploy/release --output FOLDER`, by hand before a tag.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.release import ROOT, SUMS, VERSION

NOTES = f"# GantryMQ {VERSION}\n\n- **One.** Of it.\n\n### More\n\n- # no comment\n"
CHANGES = f"# Changelog\n\n## {VERSION}\n\n{NOTES.partition(chr(10))[2].strip()}\n\n## 0.0.1\n\n- old\n"
COPIED = ("deploy/release", "deploy/release.py", "deploy/environment.sh", "deploy/rate_python.py")
PARTS = {
    "build-deb": "mkdir -p dist build/site; echo $SOURCE_DATE_EPOCH > dist/a.deb; echo page > build/site/index.html",
    "build-binary": "echo program > dist/gantry",
    "build-reports": "echo packages > dist/reports.tar",
    "sbom": "echo '{}'",
}
MADE = {"a.deb", "reports.tar", "NOTES.md", SUMS} | {
    f"{name}-{VERSION}{end}"
    for name, end in (("gantry", "-linux-x86_64"), ("gantrymq-docs", ".tar.gz"), ("gantrymq", ".cdx.json"))
}


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, folder / "dist" / f"release-{VERSION}"
        (folder / "deploy").mkdir(parents=True)
        for name in COPIED:
            shutil.copy2(ROOT / name, folder / name)
        for name, command in PARTS.items():
            self.write_part(name, command)
        shutil.copytree(ROOT / "gantrymq", folder / "gantrymq", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "CHANGELOG.md").write_text(CHANGES)
        (folder / ".gitignore").write_text("/dist/\n__pycache__/\n")
        self.git("init", "--quiet")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@b.invalid")
        self.commit()

    def write_part(self, name: str, command: str) -> None:
        script = self.folder / "deploy" / name
        script.write_text(f"#!/bin/sh\nset -e\n{command}\n")
        script.chmod(0o755)

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "All of it")

    def git(self, *words: str) -> str:
        return subprocess.run(["git", *words], cwd=self.folder, capture_output=True, text=True, check=True).stdout

    def release(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.folder / "deploy" / "release"), *options]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "tree")


def test_a_release_has_all_parts_their_hashes_and_the_notes_which_are_the_tags_too(checkout: Checkout) -> None:
    done = checkout.release("--tag")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in checkout.made.iterdir()} == MADE
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=checkout.made, check=True)
    assert len((checkout.made / SUMS).read_text().splitlines()) == len(MADE) - 1
    assert (checkout.made / "NOTES.md").read_text() == NOTES
    assert checkout.git("tag", "--list", "--format=%(contents)") == f"{NOTES}\n"
    again = checkout.release("--tag")
    assert (again.returncode, "tagged already" in again.stderr) == (1, True)


def test_the_same_commit_gives_the_same_bytes(checkout: Checkout) -> None:
    hashes = set()
    for _ in range(2):
        assert checkout.release().returncode == 0
        hashes.add((checkout.made / SUMS).read_text())
    assert len(hashes) == 1
    assert not checkout.git("tag", "--list")


def test_what_was_built_is_tagged_whatever_is_committed_meanwhile(checkout: Checkout) -> None:
    later = 'git -C "$(git remote get-url origin)" commit --quiet --allow-empty --message Later'
    checkout.write_part("build-deb", f"{later}\n{PARTS['build-deb']}")
    checkout.commit()
    built = checkout.git("rev-parse", "HEAD")
    assert checkout.release("--tag").returncode == 0
    assert checkout.git("rev-parse", f"v{VERSION}^{{commit}}") == built != checkout.git("rev-parse", "HEAD")


def test_a_part_that_fails_says_why_and_leaves_no_release(checkout: Checkout) -> None:
    checkout.write_part("build-binary", "echo no compiler >&2\nexit 3")
    checkout.commit()
    done = checkout.release("--tag")
    assert (done.returncode, "no compiler" in done.stderr) == (1, True)
    assert not checkout.made.exists() and not checkout.git("tag", "--list")


def test_a_tag_without_a_name_is_refused_before_anything_is_built(checkout: Checkout) -> None:
    checkout.git("config", "user.name", "")
    done = checkout.release("--tag")
    assert (done.returncode, "ident" in done.stderr, "build-deb" in done.stderr) == (1, True, False)


def test_a_checkout_with_changes_is_refused(checkout: Checkout) -> None:
    (checkout.folder / "left-over.py").touch()
    done = checkout.release()
    assert (done.returncode, "left-over.py" in done.stderr) == (1, True)
    assert not checkout.made.exists()
