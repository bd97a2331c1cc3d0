"""Runs the compiled load generator."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson

from appliance.bench.generator.plan import plan_of
from appliance.bench.load_spec import LoadResult, LoadSpec
from appliance.bench.python_load.driver import PythonLoad
from gantrymq.errors import GantryError


class CompiledLoad(PythonLoad):
    """A process of this program for each load; the open loop of the latency load stays Python's."""

    is_compiled = True

    def __init__(self, program: Path) -> None:
        self._program = program

    def run(self, spec: LoadSpec) -> LoadResult:
        """Raises GantryError with the program's words when it fails or hangs."""
        if spec.kind == "latency":
            return super().run(spec)
        try:
            done = subprocess.run(
                [self._program], input=plan_of(spec), capture_output=True, timeout=spec.timeout_s, check=False
            )
        except subprocess.TimeoutExpired as exc:
            raise GantryError(f"load {spec.kind} against {spec.address} hangs") from exc
        if done.returncode != 0:
            text = done.stderr.decode(errors="replace")[-2000:].strip()
            raise GantryError(f"load {spec.kind} against {spec.address} failed: {text or done.returncode}")
        return LoadResult(**orjson.loads(done.stdout))
