"""Compiling for tests, or the reason why not."""

from __future__ import annotations

import platform
from pathlib import Path

from appliance.fast_path.artifact import Artifact, of_this_checkout
from appliance.fast_path.build import build
from appliance.fast_path.toolchain import Missing
from tests.conftest import missing

INSTRUCTIONS = {"CRC-32": {"pclmulqdq", "sse4_1"}, "SHA-1": {"sha_ni", "sse4_1"}}


def slow_ways_here() -> list[str]:
    """What this processor has no instructions for, as Linux says."""
    if platform.machine() != "x86_64":
        missing("an x86-64 processor", "the instructions of others have other names")
    found = set(Path("/proc/cpuinfo").read_text(encoding="utf-8").split())
    return [name for name, needed in INSTRUCTIONS.items() if not needed <= found]


def build_or_skip(artifact: Artifact | None = None) -> None:
    try:
        build(artifact or of_this_checkout())
    except Missing as exc:
        missing("the compiled fast path", str(exc))
