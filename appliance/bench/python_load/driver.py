"""Runs the Python load generator, and the server that shows its limit."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from appliance.bench.load_spec import LoadResult, LoadSpec
from gantrymq.errors import GantryError

CHECKOUT = Path(__file__).parents[3]


class PythonLoad:
    """A process for each load."""

    is_compiled = False

    def run(self, spec: LoadSpec) -> LoadResult:
        """Raises GantryError with the process's output when it fails or hangs, and for a load it cannot put on."""
        if spec.needs_compiled:
            raise GantryError(f"this {spec.kind} load needs the compiled generator")
        command = [sys.executable, "-m", "appliance.bench.python_load.load", orjson.dumps(asdict(spec)).decode()]
        try:
            done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, timeout=spec.timeout_s, check=False)
        except subprocess.TimeoutExpired as exc:
            raise GantryError(f"load {spec.kind} against {spec.address} hangs") from exc
        if done.returncode != 0:
            raise GantryError(f"load {spec.kind} against {spec.address} failed: {done.stderr.decode()[-2000:]}")
        return LoadResult(**orjson.loads(done.stdout))

    @contextlib.contextmanager
    def null_server(self) -> Iterator[str]:
        """A server that does nothing but answer; the value is its address."""
        command = [sys.executable, "-m", "appliance.bench.python_load.null_server"]
        with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                yield f"127.0.0.1:{int(server.stdout.readline())}"
            finally:
                server.terminate()
