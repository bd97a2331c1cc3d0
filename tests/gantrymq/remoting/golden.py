"""Captured frames for tests: where they come from says tests/golden/frames/README.md."""

from __future__ import annotations

import functools
import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "golden" / "frames"


@functools.cache
def captured(name: str) -> list[dict[str, Any]]:
    """The frames of one capture, in order; `hex` is the whole frame."""
    return [json.loads(line) for line in gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes()).splitlines()]
