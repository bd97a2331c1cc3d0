"""Where the compiled module of this checkout and this interpreter lies. Starts nothing and imports nothing compiled.

`<sys.prefix>/gantry-fast-path/<hash>/gantry_compiled….so`, with its facts in `build.json` beside it. The hash is made
of the sources, the flags and the interpreter: other sources give another folder, so what was built of them is not
found, let alone loaded. A build with sanitizers, for tests, has other flags and a place of its own.

A wheel brings its build in `shipped/`, beside the sources. There the suffix alone says for which interpreters it is, as
the wheel's tag does: Python keeps its ABI within a minor version.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

MODULE = "gantry_compiled"
FACTS = "build.json"
SUFFIXES = (".pyx", ".pxd", ".pxi", ".h")
FLAGS = ("-O3", "-DNDEBUG", "-fwrapv")  # of no particular processor: an installed folder may move to another machine
SANITIZER_FLAGS = (
    "-O0",  # a quarter of the time to compile, and nothing is optimised away
    "-g1",  # lines, for the report
    "-fno-wrapv",  # so that an overflow is seen
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=undefined",
)


@dataclass(frozen=True)
class Artifact:
    """One compiled module: of which sources, with which flags, in which folder of builds."""

    sources: Path
    builds: Path
    flags: tuple[str, ...] = FLAGS
    is_shipped: bool = False

    @functools.cached_property
    def folder(self) -> Path:
        """The folder of the build that fits."""
        return self.builds / self._hash()

    @property
    def module_file(self) -> Path:
        return self.folder / (MODULE + str(sysconfig.get_config_var("EXT_SUFFIX") or ".so"))

    @property
    def facts_file(self) -> Path:
        """Written last: without it there is no build."""
        return self.folder / FACTS

    @property
    def tools(self) -> str:
        """What the build was made with, empty if there is none, or if a crash has left half of it."""
        try:
            facts = json.loads(self.facts_file.read_bytes())
            is_whole = facts["sha256"] == self.module_sha256()
        except (OSError, ValueError, KeyError, TypeError):
            return ""
        return str(facts["tools"]) if is_whole else ""

    @property
    def is_stale(self) -> bool:
        """Whether there are builds, but none that fits."""
        return not self.tools and any(path.is_dir() for path in self.builds.glob("*"))

    def module_sha256(self) -> str:
        return hashlib.sha256(self.module_file.read_bytes()).hexdigest()

    def source_files(self) -> list[Path]:
        return sorted(path for path in self.sources.iterdir() if path.suffix in SUFFIXES)

    def _hash(self) -> str:
        digest = hashlib.sha256()
        for path in self.source_files():
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode() + content)
        digest.update(json.dumps([self._interpreter(), self.flags]).encode())
        return digest.hexdigest()[:32]

    def _interpreter(self) -> list[str]:
        """What must be the same where it is built and where it is loaded."""
        if self.is_shipped:
            return [str(sysconfig.get_config_var("EXT_SUFFIX"))]
        variables = ("EXT_SUFFIX", "CFLAGS", "CONFIG_ARGS", "Py_DEBUG")
        return [sys.version, sys.base_prefix, *(str(sysconfig.get_config_var(name)) for name in variables)]


def of_this_checkout(*, sanitize: bool = False) -> Artifact:
    sources, environment = Path(__file__).parent, Path(sys.prefix)
    if sanitize:
        return Artifact(sources, environment / "gantry-fast-path-sanitize", SANITIZER_FLAGS)
    return Artifact(sources, environment / "gantry-fast-path")


def shipped(sources: Path | None = None) -> Artifact:
    """The one of a wheel, installed or, of these sources, to be made."""
    sources = sources or Path(__file__).parent
    return Artifact(sources, sources / "shipped", is_shipped=True)
