"""Compiling for tests, or the reason why not."""

from __future__ import annotations

from appliance.fast_path.artifact import Artifact, of_this_checkout
from appliance.fast_path.build import build
from appliance.fast_path.toolchain import Missing
from tests.conftest import missing


def build_or_skip(artifact: Artifact | None = None) -> None:
    try:
        build(artifact or of_this_checkout())
    except Missing as exc:
        missing("the compiled fast path", str(exc))
