"""Hosts as bytes, and the two message ids: where a record lies (broker-made) and the unique key (client-made)."""

from __future__ import annotations

import datetime
import functools
import itertools
import os
import socket
import struct
import time

from gantrymq.forks import after_fork

_OFFSET = struct.Struct(">q")
_PORT = struct.Struct(">i")


def encode_host(ip: str, port: int) -> bytes:
    """Return 8 bytes for IPv4, 20 for IPv6. An IPv4-mapped IPv6 address is stored as IPv4, as Java does."""
    try:
        packed = socket.inet_pton(socket.AF_INET, ip)
    except OSError:
        packed = socket.inet_pton(socket.AF_INET6, ip.partition("%")[0])
        if packed.startswith(b"\0" * 10 + b"\xff\xff"):
            packed = packed[12:]
    return packed + _PORT.pack(port)


@functools.lru_cache(maxsize=4096)
def decode_host(host: bytes) -> tuple[str, int]:
    """Return (ip, port) of 8 or 20 bytes."""
    family = socket.AF_INET if len(host) == 8 else socket.AF_INET6
    return socket.inet_ntop(family, host[:-4]), _PORT.unpack(host[-4:])[0]


def offset_message_id(store_host: bytes, physical_offset: int) -> str:
    """Return the id that says where the record lies: upper-case hex of host (8 or 20 bytes) and offset."""
    return (store_host + _OFFSET.pack(physical_offset)).hex().upper()


def decode_offset_message_id(message_id: str) -> tuple[str, int, int]:
    """Return (ip, port, physical_offset) of a 32 or 56 characters long id. ValueError when it is no such id."""
    raw = bytes.fromhex(message_id)
    if len(raw) not in (16, 28):
        raise ValueError(f"{message_id!r} is not an offset message id: {len(message_id)} characters, not 32 or 56")
    ip, port = decode_host(raw[:-8])
    return ip, port, _OFFSET.unpack(raw[-8:])[0]


_counter = itertools.count()


def create_unique_id() -> str:
    """Return a new UNIQ_KEY: 32 (IPv6-only hosts: 56) upper-case hex characters, RocketMQ's own recipe.

    Host address, process id, a random number for this process, ms since the month began, a counter.
    """
    prefix, month_start_ms, month_end_ms = _unique_id_base()
    now_ms = time.time_ns() // 1_000_000
    if now_ms >= month_end_ms:
        _unique_id_base.cache_clear()
        prefix, month_start_ms, month_end_ms = _unique_id_base()
    return "%s%08X%04X" % (prefix, (now_ms - month_start_ms) & 0xFFFFFFFF, next(_counter) & 0xFFFF)  # noqa: UP031 - half the work of an f-string


@functools.lru_cache(maxsize=1)
def _unique_id_base() -> tuple[str, int, int]:
    """Return the constant part of the ids, and the month (local time, ms) that their times count from."""
    first = datetime.datetime.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = (first + datetime.timedelta(days=32)).replace(day=1)
    prefix = local_address() + struct.pack(">H", os.getpid() & 0xFFFF) + os.urandom(4)
    return prefix.hex().upper(), int(first.timestamp() * 1000), int(following.timestamp() * 1000)


after_fork(_unique_id_base.cache_clear)


def local_address() -> bytes:
    """Return the packed address (4 or 16 bytes) from which this host reaches others; no packet is sent."""
    for family, probe in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((probe, 9))
                return socket.inet_pton(family, sock.getsockname()[0])
        except OSError:
            continue  # no route in this family: the next one, then loopback
    return socket.inet_aton("127.0.0.1")
