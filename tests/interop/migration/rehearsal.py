"""A page's commands, run one block after the other where they say, with real output compared to what the page shows.

    ```properties      a file: its first line is a comment with its path
    ```sh              commands, run by bash in the folder; `gantry` is this checkout's
    ```text            right behind: what they print, on stdout and stderr. Numbers, ports included, and the widths of
                       columns may be others
    <!-- test: again --> before commands: they are repeated until they print that, as the page tells people to

The page's ports are replaced by free ones. What commands leave running is in the rehearsal's own sessions, and ends
with it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.docs.pages import Block, blocks
from tests.waiting import WITHIN_S

COMMAND_S = 120.0
AGAIN_S = 1.0
PATH_LINE = re.compile(r"# (\S+)\n")
NUMBER = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+|\d+(?:[.,]\d+)*")
FIGURE = re.compile(r"(?<=  )(?:-|N%?(?: (?:ms|s|min))?(?: ago)?)(?=  |$)")  # a cell of a table; "-": not known yet


class Rehearsal:
    """One folder of one run. ports: the page's to those in use; further: lines added to files that the page writes."""

    def __init__(
        self, folder: Path, ports: Mapping[int, int], further: Mapping[str, str], env: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self._ports = {str(port): str(mine) for port, mine in ports.items()}
        self._further = further
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._env = {**os.environ, "PATH": path, "COLUMNS": "120", **env}
        self._sessions: list[int] = []

    def play(self, block: Block) -> None:
        """Write the file, or run the commands and compare."""
        code = self._mapped(block.code)
        if block.language == "properties":
            self._write(code)
            return
        deadline = time.monotonic() + WITHIN_S
        while True:
            printed = self.run(code)
            if block.output is None or masked(printed) == masked(block.output):
                return
            difference = f"{block}: printed\n{printed}\ninstead of\n{block.output}"
            assert block.needs == "again" and time.monotonic() < deadline, difference
            time.sleep(AGAIN_S)

    def end(self) -> None:
        """Kill what still runs."""
        for session in self._sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)

    def _mapped(self, text: str) -> str:
        for port, mine in self._ports.items():
            text = re.sub(rf"\b{port}\b", mine, text)
        return text

    def _write(self, code: str) -> None:
        named = PATH_LINE.match(code)
        assert named is not None, f"the first line names no file: {code[:80]!r}"
        path = self.folder / named[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code + self._further.get(path.suffix, ""))

    def run(self, code: str) -> str:
        """What the commands print; what they leave in the background writes elsewhere, as the page has it."""
        output = self.folder / "printed.txt"
        with output.open("wb") as file:
            shell = subprocess.Popen(
                ["bash", "-c", code], cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL, stdout=file,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            self._sessions.append(shell.pid)
            shell.wait(COMMAND_S)
        return output.read_text(errors="replace")


def masked(text: str) -> str:
    """Without what differs from run to run: numbers, times, and widths of columns."""
    lines = (re.sub(r" {2,}", "  ", NUMBER.sub("N", line)).strip() for line in text.splitlines())
    return "\n".join(FIGURE.sub("N", line) for line in lines if line)


def sections(page: Path) -> dict[str, list[Block]]:
    """The blocks below each heading of the second level."""
    starts = [(line, text[3:]) for line, text in enumerate(page.read_text().splitlines(), 1) if text.startswith("## ")]
    found: dict[str, list[Block]] = {heading: [] for _, heading in starts}
    for block in blocks(page):
        below = [heading for line, heading in starts if line < block.line]
        if below:
            found[below[-1]].append(block)
    return found


@contextlib.contextmanager
def rehearsal(
    folder: Path, *, ports: Mapping[int, int], further: Mapping[str, str], env: Mapping[str, str]
) -> Iterator[Rehearsal]:
    """A rehearsal that ends all it started."""
    played = Rehearsal(folder, ports, further, env)
    try:
        yield played
    finally:
        played.end()
