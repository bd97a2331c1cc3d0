"""Compiles the benchmark's C programs: once for each source and compiler, into the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from appliance.bench.maven import ToolError, cache_folder, find_tool

SOURCES = Path(__file__).parent
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra")
COMPILE_TIMEOUT_S = 300.0
NAME = "gantry-load"


def generator_program(flags: tuple[str, ...] = FLAGS) -> Path:
    """The load generator. Raises ToolError when there is no compiler or it fails."""
    return compiled_program(SOURCES, NAME, "the load generator is a C program", flags)


def compiled_program(folder: Path, name: str, why: str, flags: tuple[str, ...] = FLAGS) -> Path:
    """The program of all C files of a folder, from the cache or new; why: it needs a compiler. Raises ToolError.

    Compiled in a folder beside its place and renamed, so that two runs at once do no harm.
    """
    compiler = shlex.split(os.environ.get("CC") or "cc")
    path = find_tool(compiler[0], f"{why} (Debian: sudo apt-get install gcc libc6-dev)")
    command = [str(path), *compiler[1:], *flags, *map(str, sorted(folder.glob("*.c")))]
    place = cache_folder() / "generator" / _digest(command, folder)
    if (place / name).is_file():
        return place / name
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        work = Path(scratch) / "new"
        work.mkdir()
        _compile([*command, "-o", str(work / name)], name)
        try:
            work.rename(place)
        except OSError:
            if not (place / name).is_file():  # otherwise another run was faster
                raise
    return place / name


def _digest(command: list[str], folder: Path) -> str:
    """Of everything that the program depends on: the sources, their headers, the compiler and how it is called."""
    digest = hashlib.sha256("\0".join(command).encode())
    for source in sorted(folder.glob("*.[ch]")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:12]


def _compile(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ToolError(f"{name} could not be compiled: {exc}") from exc
    if done.returncode != 0:
        raise ToolError(f"{name} could not be compiled: {(done.stdout + done.stderr)[-2000:]}")
