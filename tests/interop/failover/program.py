"""What programs that strike masters share: the SDK's client as a process, what it told, and where files go."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from appliance.bench.gantry_peer import CHECKOUT
from gantrymq.client.connection.routes import REFRESH_S
from tests.interop.clients import ClientProgram, running
from tests.interop.failover.gaps import Gaps, Got, Sent, gaps

BLOWS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def sdk(
    name_servers: str, topic: str, group: str, way: str, folder: Path, *, refresh_s: float = REFRESH_S
) -> contextlib.AbstractContextManager[ClientProgram]:
    """steady.py as a process. refresh_s: between its looks at routes that nothing speaks against."""
    command = ["env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-P", "-m", "tests.interop.failover.steady"]
    program = contextlib.contextmanager(running)
    return program(f"sdk {way} {refresh_s:g}", [*command, name_servers, topic, group, way, str(refresh_s)], folder)


def gaps_of(program: ClientProgram, lost_ms: int, struck: str) -> Gaps:
    """What the loss of the broker `struck` at that time cost this client so far."""
    sent = [Sent(int(one), int(two), int(number), broker) for one, two, number, broker in program.lines("SENT")]
    got = [Got(int(at), int(number)) for at, number in program.lines("GOT")]
    return gaps(sent, got, lost_ms, struck)


@contextlib.contextmanager
def kept_at(folder: Path | None) -> Iterator[Path]:
    """A new folder in that one; None: one that is deleted."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield Path(tempfile.mkdtemp(dir=folder))
    else:
        with tempfile.TemporaryDirectory(prefix="failover") as made:
            yield Path(made)
