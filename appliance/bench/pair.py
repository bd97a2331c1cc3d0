"""A master and a slave of one make: started together, and followed until the slave has all."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

from appliance.bench import rpc
from appliance.bench.peer import Peer, PeerError
from gantrymq.errors import ResponseError

COPY_TIMEOUT_S = 120.0
LOOK_EACH_S = 0.02


def start_slave(slave: Peer, master: Peer) -> None:
    """Start a peer as the slave of one that runs."""
    slave.join_as_slave(master)
    slave.start_broker()


@contextlib.contextmanager
def stopped(slave: Peer | None) -> Iterator[None]:
    """Have a slave's process do nothing meanwhile: its connection stays, and takes no more bytes."""
    if slave is None:
        yield
        return
    os.kill(slave.broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(slave.broker.pid, signal.SIGCONT)


def wait_until_copied(slave: Peer, master: Peer) -> float:
    """Return how many seconds it took until the slave had all of a log that does not grow. PeerError."""
    start = time.monotonic()
    while True:
        try:
            end = rpc.log_end(master.broker_address, master.credentials)
            if end and rpc.log_end(slave.broker_address, slave.credentials) == end:
                return time.monotonic() - start
            reason = f"its master's ends at {end}"
        except ResponseError as exc:  # Apache's broker has no figures in its first second (StoreStatsService.getPutTps)
            reason = str(exc)
        if time.monotonic() - start > COPY_TIMEOUT_S:
            raise PeerError(f"{slave.label}: the slave has not got the log ({reason}): {slave.broker.last_output()}")
        time.sleep(LOOK_EACH_S)
