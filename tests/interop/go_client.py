"""The official Go client's programs: built once into the cache, run as the other clients' programs are."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.interop.build_cache import built, digest, tool
from tests.interop.clients import HERE, ClientProgram, running

SOURCES = HERE / "go"
PURE_GO = {"CGO_ENABLED": "0"}  # all that is built for tests: so Go compiles its standard library once
# No C compiler, no other toolchain than the machine's, and the versions that go.sum pins.
ENVIRONMENT = PURE_GO | {"GOTOOLCHAIN": "local"}
# Without inlining and what a debugger wants: on a new machine Go compiles its standard library, too.
QUICK = ("-ldflags=-s -w", "-gcflags=all=-l -dwarf=false")
BUILD = ("go", "build", "-mod=readonly", "-buildvcs=false", *QUICK, "-o", "programs", ".")

FLOWS = (
    "admin",
    "broadcast",
    "dead-letters",
    "filters",
    "namespace",
    "ordered",
    "poll",
    "pull",
    "requests",
    "rotation",
    "sends",
    "trace",
    "transactions",
)


class GoClient:
    """github.com/apache/rocketmq-client-go/v2, run by the programs in go/."""

    name = "go"

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._folder = _programs_folder()

    @contextlib.contextmanager
    def run(self, program: str, *arguments: object) -> Iterator[ClientProgram]:
        """Run burst or another program of main.go's table while the block runs."""
        home = f"HOME={self._logs}"  # where a broadcast consumer keeps its offsets
        command = ["env", home, self._folder / "programs", program, *map(str, arguments)]
        yield from running(f"go {program}", command, self._logs)


def _programs_folder() -> Path:
    """A folder with the program built from go/, once for each state of it."""
    files = [*sorted(SOURCES.glob("*.go")), SOURCES / "go.mod", SOURCES / "go.sum"]

    def build(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        tool(BUILD, cwd=folder, environment=ENVIRONMENT)

    return built(f"interop-go-{digest(files, str(BUILD))}", build)
