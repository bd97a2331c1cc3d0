"""Peer: a name server and a broker of one make, on free loopback ports, with a home folder of their own.

Both makes get the same properties; a subclass adds only those that its make requires.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from appliance.bench import rpc
from appliance.bench.disk_watermarks import DISK_MARKS
from appliance.bench.processes import MemoryUse, Process, free_ports
from gantrymq.errors import GantryError
from gantrymq.remoting.signature import Credentials

START_TIMEOUT_S = 180.0  # two Java processes on a core that others use, too
CLUSTER_NAME = "BenchCluster"
LOOK_FIRST_S, LOOK_LAST_S = 0.02, 0.2  # between questions to a server that starts: each is work for it, too


class PeerError(GantryError):
    """A peer did not start, or has ended; the text ends with the end of its output."""


class Peer(abc.ABC):
    """One make of broker with its name server: `with peer:` runs both."""

    label: str  # short, for tables and topics
    credentials: Credentials | None = None  # what its broker must be asked with

    def __init__(self, home: Path, *, broker_properties: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.store = home / "store"
        self.broker_name = f"{self.label}-a"
        self._extra_properties = dict(broker_properties or {})
        self._namesrv: Process | None = None
        self._broker: Process | None = None
        self._namesrv_port = 0
        self._broker_port = 0

    # -- for subclasses -----------------------------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def version(self) -> str:
        """Name and version as a table prints them."""

    @abc.abstractmethod
    def _namesrv_command(self, properties: Path) -> list[str | Path]: ...

    @abc.abstractmethod
    def broker_command(self, properties: Path) -> list[str | Path]:
        """How its broker is run with that file."""

    def _env(self) -> dict[str, str]:
        return {}

    # -- addresses and processes --------------------------------------------------------------------------------------

    @property
    def namesrv_address(self) -> str:
        return f"127.0.0.1:{self._namesrv_port}"

    @property
    def broker_address(self) -> str:
        return f"127.0.0.1:{self._broker_port}"

    @property
    def namesrv(self) -> Process:
        return _running(self._namesrv)

    @property
    def broker(self) -> Process:
        return _running(self._broker)

    def memory(self) -> dict[str, MemoryUse]:
        """What broker and name server hold, without the store's files."""
        return {"broker": self.broker.memory(self.store), "namesrv": self.namesrv.memory(self.store)}

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start both and wait until the name server knows the broker. Raises PeerError with their output."""
        self.start_namesrv()
        self.start_broker()

    def launch(self) -> None:
        """Start both at once and wait for nothing: what a first message has to wait for is then the caller's to see."""
        self._launch_namesrv()
        self.launch_broker()

    def join_as_slave(self, master: Peer) -> None:
        """Belong to another peer's broker set and name server; only start_broker may be called then."""
        self.share_name_server(master)
        self.broker_name = master.broker_name
        self._extra_properties |= {"brokerId": "1", "brokerRole": "SLAVE"}

    def share_name_server(self, other: Peer) -> None:
        """Belong to another peer's name server; of these two only the broker may be started then."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._namesrv_port = other._namesrv_port

    def start_namesrv(self) -> None:
        self._launch_namesrv()
        self._wait(self.namesrv, lambda: rpc.registered_brokers(self.namesrv_address) is not None)

    def start_broker(self) -> None:
        """Start the broker, at the port it had before if it ran before, and wait for its registration."""
        self.launch_broker()
        # Not by its name, which its slave has, too.
        self._wait(self.broker, lambda: self._broker_port in rpc.registered_ports(self.namesrv_address))
        self._wait(self.broker, lambda: rpc.max_offsets(self.broker_address, "TBW102", 1, self.credentials) != [])

    def _launch_namesrv(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        self._namesrv_port = self._namesrv_port or free_ports()
        properties = self._write("namesrv.properties", self.namesrv_properties())
        self._namesrv = Process(
            "namesrv", self._namesrv_command(properties), self.home / "namesrv.log", env=self._env()
        )

    def launch_broker(self) -> None:
        """Start the broker, at the port it had before if it ran before, and wait for nothing."""
        self._broker_port = self._broker_port or free_ports(1, -2)  # HA, and the VIP port of Java brokers
        properties = self._write("broker.properties", self.broker_properties())
        self._broker = Process("broker", self.broker_command(properties), self.home / "broker.log", env=self._env())

    def stop_broker(self) -> None:
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def kill_broker(self) -> None:
        """SIGKILL: the store is left as a crash leaves it."""
        if self._broker is not None:
            self._broker.kill()
            self._broker = None

    def stop(self) -> None:
        self.stop_broker()
        if self._namesrv is not None:
            self._namesrv.stop()
            self._namesrv = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # -- settings -----------------------------------------------------------------------------------------------------

    def change(self, properties: Mapping[str, str]) -> None:
        """Settings of the broker's next starts."""
        self._extra_properties.update(properties)

    def namesrv_properties(self) -> dict[str, str]:
        return {"listenPort": str(self._namesrv_port), "kvConfigPath": str(self.home / "kvConfig.json")}

    def broker_properties(self) -> dict[str, str]:
        """The properties of both makes, with RocketMQ's keys; for all others each make has its default."""
        return {
            "brokerClusterName": CLUSTER_NAME,
            "brokerName": self.broker_name,
            "brokerId": "0",
            "brokerRole": "ASYNC_MASTER",
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "namesrvAddr": self.namesrv_address,
            "listenPort": str(self._broker_port),
            "haListenPort": str(self._broker_port + 1),
            "storePathRootDir": str(self.store),
            "storePathCommitLog": str(self.store / "commitlog"),
            "flushDiskType": "ASYNC_FLUSH",
            "messageIndexEnable": "true",
            "autoCreateTopicEnable": "true",
            "autoCreateSubscriptionGroup": "true",
            **DISK_MARKS,
            **self._extra_properties,
        }

    def _write(self, name: str, properties: Mapping[str, str]) -> Path:
        path = self.home / name
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        return path

    def _wait(self, process: Process, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        pause_s = LOOK_FIRST_S
        while True:
            if process.exit_code is not None:
                raise PeerError(f"{self.label} {process.name} ended with {process.exit_code}: {process.last_output()}")
            try:
                if ready():
                    return
                reason = "not registered"
            except GantryError as exc:
                reason = str(exc)
            if time.monotonic() > deadline:
                raise PeerError(
                    f"{self.label} {process.name} not ready in {START_TIMEOUT_S:g} s ({reason}): "
                    f"{process.last_output()}"
                )
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, LOOK_LAST_S)


def _running(process: Process | None) -> Process:
    if process is None:
        raise PeerError("not running")
    return process
