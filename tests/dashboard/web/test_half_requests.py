"""S37. Requests without an account from many addresses hold up no one who is logged in, nor another address."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.appliance_process import RunningAppliance
from tests.conftest import time_limit
from tests.visitor import Visitor

ADDRESSES = 12
A_SECOND = 400
LOOKS = 6
ANSWER_S = 3.0  # as a median; it was 7 to 20 s
HEAD = "Host: localhost\r\n"
TOKEN = "Authorization: Bearer gantry_" + "x" * 40 + "\r\n"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n\r\n"
KINDS = {
    "half heads": f"GET /login HTTP/1.1\r\n{HEAD}",
    "half bodies": f"POST /api/v1/topics HTTP/1.1\r\n{HEAD}{TOKEN}Content-Length: 600000\r\n\r\nhalf",
    "half sockets": f"GET /live HTTP/1.1\r\n{HEAD}" + UPGRADE.format("dGhlIHNhbXBsZSBub25jZQ=="),
}


@pytest.mark.parametrize("kind", list(KINDS))
def test_s37_half_requests_from_everywhere_hold_no_page(
    gantry: RunningAppliance, administrator: Visitor, kind: str
) -> None:
    stranger = Visitor(f"http://{gantry.http}", source="127.0.0.99")
    waits: dict[str, list[float]] = {"/topics": [], "/login": []}
    with attackers(gantry.http, kind):
        for _ in range(LOOKS):
            for visitor, path in ((administrator, "/topics"), (stranger, "/login")):
                begun = time.monotonic()
                assert visitor.get(path).status == 200
                waits[path].append(time.monotonic() - begun)
    print(kind, {path: [round(wait, 2) for wait in seconds] for path, seconds in waits.items()})
    for path, seconds in waits.items():
        assert statistics.median(seconds) < time_limit(ANSWER_S), path


@contextlib.contextmanager
def attackers(address: str, kind: str) -> Iterator[None]:
    """In a process of their own, as long as the block runs; they have begun when it does."""
    command = [sys.executable, "-m", __name__, address.rpartition(":")[2], kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        try:
            assert running.stdout.readline()
            yield
            assert running.poll() is None
        finally:
            running.kill()


async def attack(port: int, said: bytes) -> None:
    """A_SECOND connections a second, by turns from each address; they are kept."""
    kept: set[asyncio.Task[None]] = set()
    begun, number = time.monotonic(), 0
    while time.monotonic() - begun < 600:
        if number == A_SECOND:  # the first second is over
            print("begun", flush=True)
        while number <= (time.monotonic() - begun) * A_SECOND:
            task = asyncio.create_task(_one(port, f"127.0.0.{2 + number % ADDRESSES}", said))
            kept.add(task)
            task.add_done_callback(kept.discard)
            number += 1
            if number == A_SECOND:
                break
        await asyncio.sleep(0.005)


async def _one(port: int, source: str, said: bytes) -> None:
    with contextlib.suppress(OSError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0), family=socket.AF_INET)
        writer.write(said)
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()


if __name__ == "__main__":
    asyncio.run(attack(int(sys.argv[1]), KINDS[sys.argv[2]].encode()))
