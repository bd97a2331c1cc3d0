"""GantryPeer: the worker processes of this checkout."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from appliance.bench.peer import Peer
from appliance.process.version import VERSION

CHECKOUT = Path(__file__).parents[2]


class GantryPeer(Peer):
    """`python -m appliance namesrv` and `broker`. With `profile` the broker runs under cProfile and writes it there."""

    label = "gantry"

    def __init__(
        self, home: Path, *, broker_properties: Mapping[str, str] | None = None, profile: Path | None = None
    ) -> None:
        super().__init__(home, broker_properties=broker_properties)
        self._profile = profile

    @property
    def version(self) -> str:
        return f"GantryMQ {VERSION}"

    def _namesrv_command(self, properties: Path) -> list[str | Path]:
        return [sys.executable, "-m", "appliance", "namesrv", "-c", properties]

    def _broker_command(self, properties: Path) -> list[str | Path]:
        command: list[str | Path] = [sys.executable]
        if self._profile is not None:
            command += ["-m", "cProfile", "-o", self._profile]
        return [*command, "-m", "appliance", "broker", "-c", properties]

    def _env(self) -> dict[str, str]:
        return {"PYTHONPATH": str(CHECKOUT)}
