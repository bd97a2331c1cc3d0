"""The servers of other systems that `python -m tests.bench.sdk` sends to: Debian's packages, each on a loopback port.

They answer a message when they have given it to the kernel, as a GantryMQ broker with ASYNC_FLUSH does: Redis with its
append-only file (written to disk each second), a JetStream stream in files. RabbitMQ can't promise as little: it writes
a persistent message to disk before it confirms it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path

from appliance.bench.peer import PeerError
from appliance.bench.processes import Process, free_ports

START_TIMEOUT_S = 120.0
LOOK_S = 0.1
ELSEWHERE = "/usr/sbin:/usr/lib/rabbitmq/bin"  # where Debian has some of the programs


def found(program: str) -> str | None:
    """Where the program is, None when it is not installed."""
    return shutil.which(program) or shutil.which(program, path=ELSEWHERE)


class Server(ABC):
    """One server, from `__enter__` to `__exit__`; its data is below `home`."""

    program: str
    name: str

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = 0
        self._process: Process | None = None

    def __enter__(self) -> Server:
        self.home.mkdir(parents=True)
        self.port = free_ports()
        self._process = Process(self.name, self.command(), self.home / "output.log", env=self.environment())
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it, and what it has started."""
        if self._process is not None:
            self._process.stop()

    @abstractmethod
    def command(self) -> list[str | Path]:
        """What starts it."""

    def environment(self) -> dict[str, str]:
        """Further variables."""
        return {}

    def version(self) -> str:
        """As the program says it."""
        told = subprocess.run([str(found(self.program)), "--version"], capture_output=True, text=True, check=False)
        return told.stdout.strip().partition(" sha=")[0] or self.name

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError as exc:
                if self._process.exit_code is not None or time.monotonic() > deadline:
                    raise PeerError(f"{self.name} does not start: {self._process.last_output()}") from exc
                time.sleep(LOOK_S)
            else:
                return


class Redis(Server):
    """Streams in an append-only file that is written to disk each second."""

    program, name = "redis-server", "Redis"

    def command(self) -> list[str | Path]:
        where: list[str | Path] = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", self.home]
        return [str(found(self.program)), *where, "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]


class Nats(Server):
    """JetStream, whose streams are in files."""

    program, name = "nats-server", "NATS"

    def command(self) -> list[str | Path]:
        where: list[str | Path] = [
            "--addr",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--store_dir",
            self.home / "streams",
        ]
        return [str(found(self.program)), "--jetstream", *where]


class Rabbit(Server):
    """Durable queues, persistent messages."""

    program, name = "rabbitmq-server", "RabbitMQ"

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._epmd_port = free_ports()
        self._distribution_port = free_ports()

    def command(self) -> list[str | Path]:
        # Debian's own start script changes to another account, which can't write here.
        plain = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
        return [plain if plain.exists() else str(found(self.program))]

    def environment(self) -> dict[str, str]:
        folder = str(self.home)
        (self.home / "rabbitmq.conf").touch()
        (self.home / "plugins").write_text("[].\n")
        return {
            "HOME": folder,  # of the cookie
            "RABBITMQ_ALLOW_INPUT": "1",  # one process in the foreground
            "RABBITMQ_NODENAME": f"gantry-bench-{os.getpid()}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": f"{folder}/data",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
        }

    def version(self) -> str:
        return "RabbitMQ"

    def stop(self) -> None:
        super().stop()
        epmd = found("epmd")  # Erlang's directory of nodes goes on without them
        if epmd is not None:
            environment = {**os.environ, "ERL_EPMD_PORT": str(self._epmd_port)}
            subprocess.run([epmd, "-kill"], env=environment, capture_output=True, check=False)
