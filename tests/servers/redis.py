"""A real redis-server without a file on disk, started, stopped, and stopped dead."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.bench.processes import free_ports
from tests.conftest import missing, require_tool
from tests.waiting import WITHIN_S, wait_until

PASSWORD = "between-tabs-and-sampler"


class Redis:
    """`url` has its password; `begin` starts it again on the same port."""

    def __init__(self, program: str) -> None:
        self._program = program
        self.port = free_ports()
        self.url = f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        command = [self._program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                   "--requirepass", PASSWORD]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_until(self._is_listening)

    def end(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait(WITHIN_S)

    def _is_listening(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@contextmanager
def running_redis() -> Iterator[Redis]:
    """Skips, saying what is missing, where Redis or its client is not installed; in CI that is a failure."""
    if importlib.util.find_spec("channels_redis") is None:
        missing("channels-redis", "Redis for live pages (deploy/extra redis)")
    redis = Redis(str(require_tool("redis-server", "a real Redis (Debian: apt install redis-server)")))
    redis.begin()
    try:
        yield redis
    finally:
        redis.end()
