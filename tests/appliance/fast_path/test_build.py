"""Compiling: once for the same sources, told in one line where it can't be, never half."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from appliance.fast_path.artifact import FACTS, Artifact
from appliance.fast_path.build import BUILDS_MAX, EXIT_FAILED, EXIT_MISSING, build, main
from appliance.fast_path.loader import load_artifact
from appliance.fast_path.toolchain import Toolchain
from tests.appliance.fast_path.compiling import build_or_skip

QUICK = ("-O0",)
UNFINISHED = ("0123", "making")
OLDER = [f"older {number}" for number in range(BUILDS_MAX + 1)]  # whole builds of other sources, the oldest first


def sources(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "compiled.pyx").write_text(f"# cython: language_level=3\n{text}\n")
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """A small module, compiled."""
    folder = tmp_path_factory.mktemp("fast path")  # a folder with a space in its name
    artifact = Artifact(sources(folder / "sources", "answer = 42"), folder / "builds", QUICK)
    for number, name in enumerate((*UNFINISHED, *OLDER)):
        (artifact.builds / name).mkdir(parents=True)
        (artifact.builds / name / "left.c").touch()
        if name in OLDER:
            (artifact.builds / name / FACTS).touch()
            os.utime(artifact.builds / name / FACTS, (number, number))
    build_or_skip(artifact)
    return artifact


@pytest.fixture
def main_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `main` builds, instead of in this environment."""
    artifact = Artifact(sources(tmp_path / "sources", "this is no Python"), tmp_path / "builds", QUICK)
    monkeypatch.setattr("appliance.fast_path.build.of_this_checkout", lambda *, sanitize: artifact)
    return artifact.builds


def test_what_was_compiled_is_loaded_and_says_what_made_it(made: Artifact) -> None:
    module, why = load_artifact(made)
    assert module is not None and module.answer == 42
    assert "Cython 3" in why and why == Toolchain.find().versions
    assert not list(made.builds.glob("*.log"))


def test_it_is_compiled_once(made: Artifact, capfd: pytest.CaptureFixture[str]) -> None:
    before = made.module_file.stat()
    build(made)
    after = made.module_file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)  # it is read, so not its atime
    assert capfd.readouterr().err == ""


def test_without_a_compiler_a_build_that_is_there_stays(made: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    build(made)
    assert load_artifact(made)[0] is not None


@pytest.mark.parametrize("change", ["a source", "another file", "a flag"])
def test_a_build_of_other_sources_is_not_loaded(made: Artifact, tmp_path: Path, change: str) -> None:
    text = "answer = 43" if change == "a source" else "answer = 42"
    folder = sources(tmp_path / "sources", text)
    if change == "another file":
        (folder / "numbers.h").write_text("#define ONE 1\n")
    flags = ("-O1",) if change == "a flag" else QUICK
    module, why = load_artifact(Artifact(folder, made.builds, flags))
    assert module is None
    assert why.startswith("compiled from other sources")
    assert load_artifact(Artifact(sources(tmp_path / "same", "answer = 42"), made.builds, QUICK))[0] is not None


def test_a_new_build_takes_the_place_of_the_one_that_was_not_used_for_longest(made: Artifact) -> None:
    kept = OLDER[-(BUILDS_MAX - 1) :]
    assert {path.name for path in made.builds.iterdir()} == {made.folder.name, "lock", *kept}


def test_a_build_that_is_used_again_is_a_new_one(made: Artifact) -> None:
    os.utime(made.facts_file, (0, 0))
    build(made)
    assert made.facts_file.stat().st_mtime > 0


@pytest.mark.parametrize("left", [b"", b"\x7fELF", b"half"])
def test_what_a_crash_has_left_of_a_build_is_not_loaded(made: Artifact, tmp_path: Path, left: bytes) -> None:
    """Loading it would end the process."""
    artifact = Artifact(made.sources, tmp_path / "builds", QUICK)
    shutil.copytree(made.folder, artifact.folder)
    assert load_artifact(artifact)[0] is not None
    whole = made.module_file.read_bytes()
    artifact.module_file.unlink()  # not written over: it is mapped
    artifact.module_file.write_bytes(whole[: len(whole) // 2] if left == b"half" else left)
    assert load_artifact(artifact)[0] is None
    shutil.copy(made.module_file, artifact.module_file)
    for facts in ("", "[]", "{}", '{"tools": "somebody", "sha256": null}'):
        artifact.facts_file.write_text(facts)
        assert load_artifact(artifact)[0] is None


def test_a_module_for_another_machine_is_told(made: Artifact, tmp_path: Path) -> None:
    artifact = Artifact(made.sources, tmp_path / "builds", QUICK)
    artifact.folder.mkdir(parents=True)
    artifact.module_file.write_bytes(b"\x7fELF of another processor")
    facts = {"tools": "somebody", "sha256": artifact.module_sha256()}
    artifact.facts_file.write_text(json.dumps(facts))
    module, why = load_artifact(artifact)
    assert module is None
    assert "can't be loaded" in why


def test_no_compiler_is_one_line_and_an_exit_code(
    main_builds: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main([]) == EXIT_MISSING
    (line,) = capfd.readouterr().err.splitlines()
    assert "without its compiled fast path, at a third to a fifth of the speed" in line
    assert "no-such-compiler, is missing: install it (Debian: sudo apt-get install gcc python3-dev)" in line
    assert not main_builds.exists()


def test_no_headers_are_told(
    main_builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "include"))
    assert main([]) == EXIT_MISSING
    (line,) = capfd.readouterr().err.splitlines()
    assert f"{tmp_path}/include/Python.h) are missing: install it" in line


def test_a_compiler_that_does_not_work_is_told(
    main_builds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", f"'{broken}'")
    assert main([]) == EXIT_MISSING
    assert "the C compiler does not work" in capfd.readouterr().err


def test_a_place_that_cannot_be_written_is_told(
    made: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    artifact = Artifact(made.sources, tmp_path / "file" / "builds", QUICK)
    monkeypatch.setattr("appliance.fast_path.build.of_this_checkout", lambda *, sanitize: artifact)
    assert main([]) == EXIT_MISSING
    assert "can't be written (Not a directory)" in capfd.readouterr().err


def test_a_compile_that_fails_is_one_line_and_a_log(
    made: Artifact, main_builds: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([]) == EXIT_FAILED
    *_, line = capfd.readouterr().err.splitlines()
    assert line.endswith(f"compiling failed, see {main_builds / 'failed.log'}")
    assert "this is no Python" in (main_builds / "failed.log").read_text()
