"""Java programs of `java/` that run beside a test."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.interop.grpc.flows import java_flows
from tests.waiting import until

HERE = Path(__file__).parent / "java"
STEP = 30
LONG_S = 240


class Side:
    """A program that goes on until it is told to stop, with its lines in a file."""

    def __init__(self, home: Path, name: str, program: str, *words: str) -> None:
        self.out = home / f"{name}.out"
        command = [*map(str, java_flows(home)[:-1]), str(HERE / f"{program}.java")]
        with self.out.open("ab") as out:
            self.process = subprocess.Popen([*command, *words], stdin=subprocess.PIPE, stdout=out)

    def bodies(self, word: str) -> list[str]:
        lines = self.out.read_text().splitlines()
        return [line.partition("\t")[2] for line in lines if line.partition("\t")[0] == word]

    async def goes_on(self) -> None:
        """Until it has some more messages."""
        came = len(self.bodies("GOT"))
        await until(lambda: len(self.bodies("GOT")) >= came + STEP, LONG_S)

    def stop(self) -> None:
        """Tell a sender to end."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def side(home: Path, name: str, program: str, *words: str) -> Iterator[Side]:
    """It runs while the block does, and is killed then."""
    one = Side(home, name, program, *words)
    try:
        yield one
    finally:
        one.kill()
