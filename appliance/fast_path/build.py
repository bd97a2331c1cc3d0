"""Compiles the fast path: `python -m appliance.fast_path.build`. Does nothing when it is there already.

    cython    compiled.pyx and what it includes -> one C file
    cc        the C file -> one extension module, in the folder that artifact.py names

What is missing for that is told in one line; the broker runs without. Exit codes: 0 it is there, 3 something is missing
on this machine, 4 compiling failed.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from appliance.fast_path.artifact import FACTS, MODULE, Artifact, of_this_checkout, shipped
from appliance.fast_path.toolchain import Missing, Toolchain, machines_part
from gantrymq.errors import GantryError

EXIT_MISSING = 3
EXIT_FAILED = 4
MAIN_SOURCE = "compiled.pyx"
COST = "The broker runs without its compiled fast path, at a third to a fifth of the speed"
BUILDS_MAX = 4  # of other sources or interpreters, in one environment
STEP_LIMIT_S = 3600.0  # of a compiler that hangs; the usual minute may be an hour on a starved machine


class CompileError(GantryError):
    """A step of the build failed; the text names its log."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m appliance.fast_path.build", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sanitize", action="store_true", help="with AddressSanitizer and UBSan, for tests")
    parser.add_argument("--look", action="store_true", help="compile nothing: is all there but for Cython?")
    options = parser.parse_args(arguments)
    artifact = of_this_checkout(sanitize=options.sanitize)
    try:
        if options.look:
            return look(artifact)
        build(artifact)
    except Missing as exc:
        _say(f"{COST}: {exc}")
        return EXIT_MISSING
    except CompileError as exc:
        _say(f"{COST}: {exc}")
        return EXIT_FAILED
    return 0


def look(artifact: Artifact) -> int:
    """The exit code before Cython is installed. Raises Missing, unless a build that was made elsewhere is there."""
    try:
        machines_part()
    except Missing:
        if artifact.tools:
            return EXIT_MISSING
        raise
    return 0


def build(artifact: Artifact) -> None:
    """Compile, unless that was done with the same sources and tools. Raises Missing, CompileError."""
    try:
        tools = Toolchain.find()
    except Missing:
        if artifact.tools:
            return  # made in another place, or what made it is gone
        raise
    if artifact.tools == tools.versions:
        _note_use(artifact)
        return
    with _alone(artifact.builds):
        if artifact.tools != tools.versions:  # else another process has just made it
            started = time.monotonic()
            _say(f"Compiling the fast path with {tools.versions}")
            _make(artifact, tools)
            _say(f"Compiled in {time.monotonic() - started:.0f} s")
        _remove_oldest(artifact)


@contextlib.contextmanager
def _alone(builds: Path) -> Iterator[None]:
    """One process at a time makes builds; the others wait."""
    try:
        builds.mkdir(parents=True, exist_ok=True)
        lock = (builds / "lock").open("w")
    except OSError as exc:
        raise Missing(f"{builds} can't be written ({exc.strerror})") from exc
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ship(sources: Path) -> Artifact:
    """Put a build beside these sources, for a wheel: this environment's, made first if need be. Raises Missing,
    CompileError."""
    own = of_this_checkout()
    build(own)
    to = shipped(sources)
    to.folder.mkdir(parents=True)
    for path in (own.module_file, own.facts_file):
        shutil.copy(path, to.folder)
    return to


def _make(artifact: Artifact, tools: Toolchain) -> None:
    """In a folder beside, then moved: there is never half a build."""
    making = artifact.builds / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for source in artifact.source_files():  # flat and outside of the package: cimport finds them by their plain names
        shutil.copy(source, making)
    c_file, module_file = Path(f"{MODULE}.c"), Path(artifact.module_file.name)
    log = artifact.builds / "failed.log"
    log.unlink(missing_ok=True)
    _run(tools.translate(Path(MAIN_SOURCE), MODULE, c_file), making, log)
    _run(tools.compile(c_file, artifact.flags, module_file), making, log)
    log.unlink()
    artifact.folder.mkdir(exist_ok=True)
    artifact.facts_file.unlink(missing_ok=True)
    (making / module_file).replace(artifact.module_file)
    facts = {"tools": tools.versions, "flags": shlex.join(artifact.flags), "sha256": artifact.module_sha256()}
    artifact.facts_file.write_text(json.dumps(facts) + "\n")


def _run(command: list[str], folder: Path, log: Path) -> None:
    with log.open("a") as output:
        print(shlex.join(command), file=output, flush=True)
        done: subprocess.CompletedProcess[bytes] | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command, cwd=folder, stdout=output, stderr=output, stdin=subprocess.DEVNULL, check=False,
                timeout=STEP_LIMIT_S,
            )  # fmt: skip
    if done is None or done.returncode != 0:
        raise CompileError(f"compiling failed, see {log}")


def _note_use(artifact: Artifact) -> None:
    """A build is as old as its last use here: checkouts that share an environment take turns."""
    with contextlib.suppress(OSError):  # installed by another user, who also decides what is removed
        os.utime(artifact.facts_file)


def _remove_oldest(artifact: Artifact) -> None:
    """Keep this build and those used last. A process that runs with a removed one has its file mapped."""
    others = [path for path in artifact.builds.iterdir() if path.is_dir() and path != artifact.folder]
    others.sort(key=_used_at, reverse=True)
    for number, folder in enumerate(others, start=2):
        if number > BUILDS_MAX or not _used_at(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _used_at(folder: Path) -> float:
    """When a build was made or used last; 0 for one that did not end."""
    try:
        return (folder / FACTS).stat().st_mtime
    except OSError:
        return 0.0


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
