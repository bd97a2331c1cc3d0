"""A network in user space: each node is a network namespace, and this process carries the packets between them.

So it can lose or delay what one node sends to another, in one direction alone, while all else arrives. The nodes see
what a real cut shows: nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import ipaddress
import itertools
import os
import select
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import missing, require_tool
from tests.faults.kit.small_disk import at_the_end

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 0x0001, 0x1000, 0x40000000
MTU = 9000
SOURCE, TARGET = slice(12, 16), slice(16, 20)  # of an IPv4 header
CUT = float("inf")


class Network:
    """Nodes by name. "" is this process itself. address: of each; command: what runs a program there."""

    def __init__(self, names: list[str]) -> None:
        number = os.getpid() % 250
        self._prefix = f"gq{os.getpid()}"
        self.address = {name: f"10.203.{number}.{place}" for place, name in enumerate(["", *names], start=1)}
        self._files: dict[bytes, int] = {}
        self._late: dict[tuple[bytes, bytes], float] = {}
        self._ends = os.pipe()
        self._thread = threading.Thread(target=self._carry, name="network", daemon=True)

    def command(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace(name)]

    def namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def late(self, source: str, target: str, seconds: float) -> None:
        """Have what one node sends to the other arrive so much later; CUT: never."""
        self._late[self._key(source), self._key(target)] = seconds

    def heal(self) -> None:
        self._late = {}

    # -- inside -------------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> bytes:
        return ipaddress.IPv4Address(self.address[name]).packed

    def open(self) -> None:
        for name, address in self.address.items():
            where = ["-n", self.namespace(name)] if name else []
            device = f"{self._prefix}{'' if name else 'h'}"[:15]
            if name:
                _ip("netns", "add", self.namespace(name))
                _ip(*where, "link", "set", "lo", "up")
            self._files[self._key(name)] = _tun(device, self.namespace(name) if name else "")
            _ip(*where, "addr", "add", f"{address}/24", "dev", device)
            _ip(*where, "link", "set", device, "mtu", str(MTU), "up")
        self._thread.start()

    def close(self) -> None:
        if self._thread.is_alive():
            os.write(self._ends[1], b"x")
            self._thread.join()
        for file in (*self._files.values(), *self._ends):
            os.close(file)

    def _carry(self) -> None:
        poll, waiting, number = select.poll(), list[tuple[float, int, int, bytes]](), itertools.count()
        for file in (*self._files.values(), self._ends[0]):
            poll.register(file, select.POLLIN)
        while True:
            left_ms = None if not waiting else max(waiting[0][0] - time.monotonic(), 0.0) * 1000
            for file, _event in poll.poll(left_ms):
                if file == self._ends[0]:
                    return
                packet = os.read(file, 2 * MTU)
                target = self._files.get(packet[TARGET])
                seconds = self._late.get((packet[SOURCE], packet[TARGET]), 0.0)
                if target is not None and seconds != CUT:
                    heapq.heappush(waiting, (time.monotonic() + seconds, next(number), target, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _due, _number, target, packet = heapq.heappop(waiting)
                with contextlib.suppress(OSError):  # its queue is full: lost, as in any network
                    os.write(target, packet)


@contextlib.contextmanager
def network(names: list[str]) -> Iterator[Network]:
    """Nodes of these names. Without the right to make them the test skips aloud; in CI it fails."""
    require_tool("ip", "namespaces of the network (Debian: apt install iproute2)")
    made = Network(names)
    ends = "; ".join(f"ip netns del {made.namespace(name)}" for name in names)
    with at_the_end(["sh", "-c", ends]):
        try:
            try:
                made.open()
            except (OSError, subprocess.CalledProcessError) as exc:
                missing("the right to make network namespaces", str(exc))
            yield made
        finally:
            made.close()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _tun(device: str, namespace: str) -> int:
    """A TUN device in that namespace; "": in this one."""
    made: list[int | OSError] = []

    def make() -> None:
        try:
            if namespace:
                libc, where = ctypes.CDLL(None, use_errno=True), os.open(Path("/run/netns") / namespace, os.O_RDONLY)
                if libc.setns(where, CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
                os.close(where)
            file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            made.append(file)
        except OSError as exc:
            made.append(exc)

    thread = threading.Thread(target=make)  # which alone is in that namespace
    thread.start()
    thread.join()
    (found,) = made
    if isinstance(found, OSError):
        raise found
    return found
