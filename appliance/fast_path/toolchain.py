"""What the fast path is compiled with: Cython, a C compiler, Python's headers."""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gantrymq.errors import GantryError

INSTALL = "install it (Debian: sudo apt-get install gcc python3-dev)"
INSTALL_CYTHON = f"install it ({sys.executable} -m pip install --require-hashes -r deploy/locks/fast-path.lock)"
ANSWER_LIMIT_S = 600.0  # of a compiler that is asked for its version


class Missing(GantryError):
    """Something to compile with is not there; the text names it and the fix."""


@dataclass(frozen=True)
class Toolchain:
    """What compiles, by name and version."""

    compiler: tuple[str, ...]  # a command: CC may have arguments, or be two programs (ccache gcc)
    versions: str

    @classmethod
    def find(cls) -> Toolchain:
        """Raises Missing for the first thing that is not there."""
        compiler = machines_part()
        try:
            cython = importlib.metadata.version("cython")
        except importlib.metadata.PackageNotFoundError:
            raise Missing(f"Cython is missing: {INSTALL_CYTHON}") from None
        return cls(tuple(compiler), f"Cython {cython}, {_version(compiler)}")

    def translate(self, source: Path, module: str, to: Path) -> list[str]:
        """The command that makes C of Cython."""
        options = ["-3", "--module-name", module, "--output-file", str(to)]
        return [sys.executable, "-P", "-m", "cython", *options, str(source)]

    def compile(self, source: Path, flags: Sequence[str], to: Path) -> list[str]:
        """The command that makes an extension module of C."""
        shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
        headers = [f"-I{folder}" for folder in (sysconfig.get_path("include"), sysconfig.get_path("platinclude"))]
        return [*self.compiler, "-std=gnu11", "-fPIC", *flags, *shared, *headers, str(source), "-o", str(to)]


def machines_part() -> list[str]:
    """The compiler's command; Python's headers are there too. Raises Missing. Cython is another matter: it can be
    installed without the machine's administrator."""
    compiler = _compiler()
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        raise Missing(f"the headers of this Python ({sysconfig.get_path('include')}/Python.h) are missing: {INSTALL}")
    return compiler


def _compiler() -> list[str]:
    """CC, else the one that made this Python, else any."""
    named = os.environ.get("CC", "")
    own = str(sysconfig.get_config_var("CC") or "")
    for text in (named, own, "cc", "gcc", "clang"):
        command = shlex.split(text)
        if command and shutil.which(command[0]):
            return command
        if named:
            raise Missing(f"the C compiler that CC names, {named}, is missing: {INSTALL}")
    raise Missing(f"a C compiler is missing: {INSTALL}")


def _version(compiler: list[str]) -> str:
    command = [*compiler, "--version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=ANSWER_LIMIT_S).stdout
    except (OSError, subprocess.SubprocessError) as exc:
        raise Missing(f"the C compiler does not work ({shlex.join(command)}: {exc}): {INSTALL}") from exc
    return (answer.strip().splitlines() or [compiler[0]])[0]
