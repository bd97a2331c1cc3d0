"""What hostile clients do to a proxy: forty connections of one kind for some seconds, as a process of its own.

    python -m tests.faults.grpc.hostile_calls KIND PORT SECONDS      prints what was done, as JSON

Each kind yields bytes for one connection, made by h2 without its checks, or by hand.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.settings import SettingCodes

CONNECTIONS = 40
PATH = "/apache.rocketmq.v2.MessagingService/"
UNCHECKED = H2Configuration(
    client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False, header_encoding="utf-8"
)

Bytes = Iterator[bytes]


def _opened() -> H2Connection:
    h2 = H2Connection(config=UNCHECKED)
    h2.initiate_connection()
    return h2


def _headers(call: str = "QueryRoute", **more: str) -> list[tuple[str, str]]:
    own = {":method": "POST", ":scheme": "http", ":path": PATH + call, ":authority": "x"}
    own |= {"content-type": "application/grpc", "te": "trailers", "x-mq-client-id": "hostile"}
    return [*own.items(), *more.items()]


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def pings() -> Bytes:
    yield _opened().data_to_send()
    while True:
        yield _frame(6, 0, 0, os.urandom(8)) * 500


def settings() -> Bytes:
    yield _opened().data_to_send()
    while True:
        yield _frame(4, 0, 0, struct.pack(">HI", SettingCodes.INITIAL_WINDOW_SIZE, 65_535)) * 500


def window_updates() -> Bytes:
    yield _opened().data_to_send()
    while True:
        yield _frame(8, 0, 0, struct.pack(">I", 1)) * 500


def rapid_resets() -> Bytes:
    h2 = _opened()
    while True:
        for _ in range(50):
            stream = h2.get_next_available_stream_id()
            h2.send_headers(stream, _headers())
            h2.reset_stream(stream)
        yield h2.data_to_send()


def unknown_frames() -> Bytes:
    yield _opened().data_to_send()
    while True:
        yield _frame(0x42, 0, 0, b"x" * 16) * 300


def empty_data() -> Bytes:
    h2 = _opened()
    h2.send_headers(1, _headers())
    yield h2.data_to_send()
    while True:
        yield _frame(0, 0, 1) * 500


def continuations() -> Bytes:
    yield _opened().data_to_send()
    yield _frame(1, 0, 1, b"\x82")
    while True:
        yield _frame(9, 0, 1, b"\x00\x01a\x01b" * 20) * 20


def hpack_bomb() -> Bytes:
    h2 = _opened()
    yield h2.data_to_send()
    value = b"v" * 4000
    yield _frame(1, 4, 1, b"\x40\x01a\x7f" + bytes((0x80 | (len(value) - 127) & 0x7F, (len(value) - 127) >> 7)) + value)
    stream = 3
    while True:
        yield _frame(1, 4, stream, b"\xbe" * 4000)
        stream += 2


def slow_streams() -> Bytes:
    h2 = _opened()
    for _ in range(100):
        stream = h2.get_next_available_stream_id()
        h2.send_headers(stream, _headers("SendMessage"))
        h2.send_data(stream, b"\x00" + struct.pack(">I", 4 << 20))
    yield h2.data_to_send()
    while True:
        yield b""


def large_messages() -> Bytes:
    h2 = _opened()
    h2.send_headers(1, _headers("SendMessage"))
    h2.send_data(1, b"\x00" + struct.pack(">I", 1 << 31))
    yield h2.data_to_send()


def malformed_messages() -> Bytes:
    h2 = _opened()
    for _ in range(30):
        stream = h2.get_next_available_stream_id()
        h2.send_headers(stream, _headers())
        h2.send_data(stream, b"\x00" + struct.pack(">I", 30) + os.urandom(30), end_stream=True)
    yield h2.data_to_send()


def no_http() -> Bytes:
    while True:
        yield os.urandom(4096)


def no_account() -> Bytes:
    h2 = _opened()
    for _ in range(30):
        stream = h2.get_next_available_stream_id()
        h2.send_headers(stream, _headers("Heartbeat"))
        h2.send_data(stream, b"\x00\x00\x00\x00\x00", end_stream=True)
    yield h2.data_to_send()


KINDS: dict[str, Callable[[], Bytes]] = {
    kind.__name__: kind
    for kind in (
        pings, settings, window_updates, rapid_resets, unknown_frames, empty_data, continuations, hpack_bomb,
        slow_streams, large_messages, malformed_messages, no_http, no_account,
    )
}  # fmt: skip


async def attack(kind: str, port: int, seconds: float) -> dict[str, int]:
    """Forty connections at a time; one that the proxy ends is made anew."""
    ends_at = time.monotonic() + seconds
    totals = {"connections": 0, "bytes": 0}

    async def one() -> None:
        while time.monotonic() < ends_at:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                totals["connections"] += 1
                reading = asyncio.create_task(_read(reader))
                try:
                    for data in KINDS[kind]():
                        if time.monotonic() > ends_at or reading.done():
                            break
                        writer.write(data)
                        totals["bytes"] += len(data)
                        await asyncio.wait_for(writer.drain(), 1)
                        await asyncio.sleep(0.01 if not data else 0)
                    else:
                        await asyncio.sleep(0.05)  # for the proxy to take what was sent
                except TimeoutError:
                    pass  # the proxy reads no more: the next connection
                finally:
                    reading.cancel()
                    writer.transport.abort()
            await asyncio.sleep(0.01)

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return totals


async def _read(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(65_536):
            pass


if __name__ == "__main__":
    print(json.dumps(asyncio.run(attack(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))))
