"""A proxy as a process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from tests.source_files import ROOT


@contextlib.contextmanager
def proxy_process(
    namesrv: str,
    log: Path,
    port: int = 0,
    environment: Mapping[str, str] = MappingProxyType({}),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port, while the block runs. environment: further variables; settings: further properties."""
    properties = log.with_suffix(".properties")
    lines = {"grpcServerPort": str(port), "namesrvAddr": namesrv, **settings}
    properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    command = [sys.executable, "-P", "-m", "appliance", "proxy", "-c", str(properties)]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env={**os.environ, **environment}
        )
    try:
        assert process.stdout is not None
        word, _, facts = process.stdout.readline().partition(" ")
        assert word == "READY", (word, facts, log.read_text())
        yield process, int(json.loads(facts)["listen"].rpartition(":")[2])
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
