"""One HTTP/1.1 POST with a deadline, on a connection of its own: what etcd's JSON gateway needs.

A connection a call: a member of etcd that stands still is then noticed by the deadline of the call that met it, and
keeps nothing of another call.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass

from gantrymq.errors import GantryError
from gantrymq.timeouts import timeout_at

HEAD_BYTES_MAX = 16_384
BODY_BYTES_MAX = 4 << 20  # a whole prefix of keys takes some kilobytes


class CallFailed(GantryError):
    """No whole answer. was_sent: the server may have executed the request; otherwise it has not."""

    def __init__(self, why: str, *, was_sent: bool) -> None:
        super().__init__(why)
        self.was_sent = was_sent


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one member of etcd answers. tls: None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @property
    def authority(self) -> str:
        """host:port, as it stands in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.authority}"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


async def post(endpoint: Endpoint, path: str, body: bytes, headers: dict[str, str], deadline: float) -> Answer:
    """POST, and return the whole answer. deadline: on the running loop's clock. CallFailed."""
    was_sent = False
    writer: asyncio.StreamWriter | None = None
    try:
        async with timeout_at(deadline):
            reader, writer = await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=endpoint.tls, limit=HEAD_BYTES_MAX
            )
            writer.write(_request(endpoint, path, body, headers))
            was_sent = True
            await writer.drain()
            return await _answer(reader)
    except TimeoutError:
        raise CallFailed(f"{endpoint} has not answered in time", was_sent=was_sent) from None
    except OSError as exc:
        raise CallFailed(f"{endpoint}: {(exc.strerror or str(exc)).lower()}", was_sent=was_sent) from exc
    except (EOFError, ValueError, asyncio.LimitOverrunError) as exc:
        raise CallFailed(f"{endpoint} did not answer as etcd does: {exc}", was_sent=was_sent) from exc
    finally:
        if writer is not None:
            writer.transport.abort()  # nothing is left to send, and a TLS good-bye could wait


def _request(endpoint: Endpoint, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {endpoint.authority}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def _answer(reader: asyncio.StreamReader) -> Answer:
    """ValueError for what is no HTTP answer, or one that is too long."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    version, _, rest = head[0].partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
        raise ValueError(f"{head[0][:80]!r} is not an HTTP answer")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    if fields.get("transfer-encoding", "").lower() == "chunked":
        return Answer(int(rest[:3]), await _chunks(reader))
    length = fields.get("content-length", "")
    if not length.isdecimal() or int(length) > BODY_BYTES_MAX:
        raise ValueError(f"an answer of {length or 'unknown'} bytes")
    return Answer(int(rest[:3]), await reader.readexactly(int(length)))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        if size < 0 or len(body) + size > BODY_BYTES_MAX:
            raise ValueError(f"an answer of more than {BODY_BYTES_MAX} bytes")
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    return bytes(body)
