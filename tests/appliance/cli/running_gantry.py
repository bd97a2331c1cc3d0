"""Running `gantry admin …` in a test, and what it printed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from appliance.__main__ import main


@dataclass
class Ran:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


Gantry = Callable[..., Ran]


def run_gantry(capsys: pytest.CaptureFixture[str], *words: str) -> Ran:
    """Run `gantry WORDS` in this process."""
    try:
        code = main(words)
    except SystemExit as exc:  # argparse
        code = int(exc.code or 0)
    captured = capsys.readouterr()
    return Ran(code, captured.out, captured.err)


async def gantry_admin(capsys: pytest.CaptureFixture[str], namesrv: str, *words: str) -> Ran:
    """Run `gantry admin WORDS` beside this loop, on which brokers of the test may be."""
    return await asyncio.to_thread(run_gantry, capsys, "admin", *words, "--timeout", "60", "-n", namesrv)
