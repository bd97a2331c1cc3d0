"""FloorPeer: the server of C in the place of a broker. What it costs a message, the kernel costs with any broker."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path

from appliance.bench.generator.build import compiled_program
from appliance.bench.peer import Peer, PeerError
from appliance.bench.processes import MemoryUse, Process
from appliance.bench.results import FLOOR

SOURCES = Path(__file__).parent
START_TIMEOUT_S = 60.0
LOOK_S = 0.01
_PORT = re.compile(r"\d+\n")


class FloorPeer(Peer):
    """One process, which needs no name server and has no settings. Raises ToolError without a C compiler."""

    label = FLOOR
    stores = False

    def __init__(self, home: Path, *, broker_properties: Mapping[str, str] | None = None) -> None:
        super().__init__(home, broker_properties=broker_properties)
        self._program = compiled_program(SOURCES, "gantry-floor", "the floor is a C program")

    @property
    def version(self) -> str:
        return "The floor (a server of C that stores nothing)"

    def memory(self) -> dict[str, MemoryUse]:
        """There is no name server: it holds nothing."""
        return {"broker": self.broker.memory(self.store), "namesrv": MemoryUse(0, 0)}

    def start(self) -> None:
        """Start it and wait for the port that it took. Raises PeerError with its output."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._broker = Process("broker", self._broker_command(self.home), self.home / "broker.log")
        deadline = time.monotonic() + START_TIMEOUT_S
        while not _PORT.fullmatch(self._broker.last_output()):
            if self._broker.exit_code is not None or time.monotonic() > deadline:
                told = self._broker.last_output()
                self.stop()
                raise PeerError(f"the floor does not start: {told}")
            time.sleep(LOOK_S)
        self._broker_port = int(self._broker.last_output())

    def launch(self) -> None:
        """Its port is known only when it has started."""
        self.start()

    def _namesrv_command(self, properties: Path) -> list[str | Path]:
        raise PeerError("the floor has no name server")

    def _broker_command(self, properties: Path) -> list[str | Path]:
        return [self._program]
