"""Runs the load generator: a process for each load."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import orjson

from appliance.bench.generator.plan import plan_of
from appliance.bench.load_spec import LoadResult, LoadSpec
from gantrymq.errors import GantryError

CHECKOUT = Path(__file__).parents[3]


class LoadProgram:
    """The compiled program; the open loop of the latency load is `bench/latency.py`."""

    def __init__(self, program: Path) -> None:
        self._program = program

    def run(self, spec: LoadSpec) -> LoadResult:
        """Raises GantryError with the program's words when it fails or hangs."""
        command: list[str | Path]
        if spec.kind == "latency":
            command, plan = [sys.executable, "-m", "appliance.bench.latency"], orjson.dumps(asdict(spec))
        else:
            command, plan = [self._program], plan_of(spec)
        try:
            done = subprocess.run(
                command, input=plan, cwd=CHECKOUT, capture_output=True, timeout=spec.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as exc:
            raise GantryError(f"load {spec.kind} against {spec.address} hangs") from exc
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace")[-2000:].strip()
            raise GantryError(f"load {spec.kind} against {spec.address} failed: {text or done.returncode}")
        return LoadResult(**orjson.loads(done.stdout))
