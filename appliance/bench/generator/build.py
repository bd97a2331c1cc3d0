"""Compiles the load generator: once for each source and compiler, into the user's cache folder."""

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
    """The compiled program, from the cache or new. Raises ToolError when there is no compiler or it fails.

    Compiled in a folder beside its place and renamed, so that two runs at once do no harm.
    """
    compiler = shlex.split(os.environ.get("CC") or "cc")
    path = find_tool(compiler[0], "the load generator is a C program (Debian: sudo apt-get install gcc libc6-dev)")
    sources = sorted(SOURCES.glob("*.c"))
    command = [str(path), *compiler[1:], *flags, *map(str, sources)]
    place = cache_folder() / "generator" / _digest(command)
    if (place / NAME).is_file():
        return place / NAME
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        work = Path(scratch) / "new"
        work.mkdir()
        _compile([*command, "-o", str(work / NAME)])
        try:
            work.rename(place)
        except OSError:
            if not (place / NAME).is_file():  # otherwise another run was faster
                raise
    return place / NAME


def _digest(command: list[str]) -> str:
    """Of everything that the program depends on: the sources, their headers, the compiler and how it is called."""
    digest = hashlib.sha256("\0".join(command).encode())
    for source in sorted(SOURCES.glob("*.[ch]")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:12]


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise ToolError(f"the load generator could not be compiled: {exc}") from exc
    if done.returncode != 0:
        raise ToolError(f"the load generator could not be compiled: {(done.stdout + done.stderr)[-2000:]}")
