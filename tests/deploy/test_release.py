"""deploy/release: what it refuses, the notes it takes from CHANGELOG.md, hashes, the same archive twice.

test_release_command.py runs it, with stand-ins for what takes minutes and the network.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from deploy.release import ROOT, SUMS, VERSION, Refused, check, check_output, commands, notes, pack, sums

CHANGES = f"# Changelog\n\n## Unreleased\n\n- later\n\n## {VERSION}\n\n- **One.** Of it.\n\n## 0.0.1\n\n- old\n"
RELEASED = CHANGES.replace("- later\n\n", "")
NOT_NAMED = CHANGES.replace(f"## {VERSION}\n", "## 0.0.2\n")


@pytest.mark.parametrize(
    ("status", "changes", "tags", "words"),
    [
        (" M README.md\n", CHANGES, [], "README.md"),
        ("?? new.py\n", CHANGES, [], "new.py"),
        ("", CHANGES, ["v0.0.1", f"v{VERSION}"], "tagged already"),
        ("", "# Changelog\n\n## 0.0.1\n\n- old\n", [], "neither a section"),
        ("", NOT_NAMED, [], "rename"),
        ("", CHANGES, [], "which the notes of"),
    ],
)
def test_a_release_is_refused_with_the_reason(status: str, changes: str, tags: list[str], words: str) -> None:
    with pytest.raises(Refused, match=re.escape(words)):
        check(status, changes, tags=tags, to_tag=True)


def test_a_clean_checkout_with_notes_is_released() -> None:
    check("", RELEASED, tags=["v0.0.1"], to_tag=True)
    check("", CHANGES, tags=["v0.0.1"], to_tag=False)
    check("", NOT_NAMED, tags=[], to_tag=False)


def test_the_notes_are_the_versions_own_section_or_what_is_not_released_yet() -> None:
    assert notes(CHANGES) == f"# GantryMQ {VERSION}\n\n- **One.** Of it.\n"
    assert "- later" in notes(NOT_NAMED)
    assert len(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))) > 1000


def test_a_folder_with_other_files_is_refused_and_an_older_release_is_not(tmp_path: Path) -> None:
    check_output(tmp_path / "new")
    check_output(tmp_path)
    (tmp_path / "NOTES.md").touch()
    (tmp_path / SUMS).write_text(sums(tmp_path))
    check_output(tmp_path)
    (tmp_path / "mine").touch()
    with pytest.raises(Refused, match="mine"):
        check_output(tmp_path)


def test_more_pythons_get_wheels_and_the_first_one_keeps_its_own() -> None:
    assert commands([]) == [["build-deb"], ["build-binary"], ["build-reports"]]
    assert commands(["python3.13"])[1] == ["build-wheels", "/usr/bin/python3", "python3.13"]


def test_hashes_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "gantry").write_bytes(b"b")
    (tmp_path / SUMS).write_text(sums(tmp_path))
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", SUMS], cwd=tmp_path, check=True)
    assert len((tmp_path / SUMS).read_text().splitlines()) == 2


def test_the_documentation_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "site" / "images").mkdir(parents=True)
    for name in ("index.html", "images/a.webp"):
        (tmp_path / "site" / name).write_text(name)
    pack(tmp_path / "site", tmp_path / "first.tar.gz", 1_700_000_000)
    os.utime(tmp_path / "site" / "index.html", (1, 1))
    pack(tmp_path / "site", tmp_path / "second.tar.gz", 1_700_000_000)
    assert (tmp_path / "first.tar.gz").read_bytes() == (tmp_path / "second.tar.gz").read_bytes()


def test_what_the_pages_call_what_is_published_is_its_version() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name in (r"gantrymq_(\d[\d.]*)-1", r"gantrymq-reports-(\d[\d.]*)-", r"deploy/upgrade v(\d[\d.]*)"):
        assert set(re.findall(name, text)) == {VERSION}, name
