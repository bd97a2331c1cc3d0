"""One port for TLS and plain connections, on both event loops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from appliance.remoting import acceptor, tls_listener
from appliance.remoting import tls as tls_module
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import LaneLimits, Route
from appliance.remoting.lanes import Lanes
from appliance.remoting.server import RemotingServer
from appliance.remoting.tls import ServerTls
from appliance.settings.tls import TlsSettings
from gantrymq import log_limit
from gantrymq.errors import ConnectError, GantryError
from gantrymq.log_limit import LINES_MAX
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.tls import TlsConfig
from gantrymq.timeouts import timeout
from tests.appliance.loops import on_both_loops
from tests.appliance.peer import Peer
from tests.certificates import authority, server_fields, trusting

ECHO = 10


def echo(connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    return request.reply(0, None, request.ext_fields, request.body)


ROUTES = {ECHO: Route(echo, "fast")}


@contextlib.asynccontextmanager
async def port(**fields: Any) -> AsyncIterator[tuple[int, ServerTls]]:
    """A served port with these fields of TlsSettings."""
    tls = ServerTls(TlsSettings(**server_fields(**fields)))
    lanes = Lanes({"fast": LaneLimits(1000)})
    server = RemotingServer(lanes, host="127.0.0.1", port=0, tls=tls)
    try:
        number = await server.open()
        server.serve(ROUTES)
        yield number, tls
    finally:
        await server.close()
        await lanes.close()


async def ask(number: int, tls: TlsConfig | ssl.SSLContext | None, body: bytes = b"hello") -> bytes:
    client = RemotingClient(tls=tls)
    try:
        answer = await client.invoke(f"127.0.0.1:{number}", RemotingCommand.request(ECHO, None, body), timeout_s=30)
        assert answer.code == 0
        return answer.body
    finally:
        await client.close()


@on_both_loops
async def test_a_permissive_port_takes_both() -> None:
    async with port() as (number, _):
        big = bytes(3_000_000)
        for tls in (None, trusting(), None):
            assert await ask(number, tls) == b"hello"
            assert await ask(number, tls, big) == big


@on_both_loops
async def test_an_enforcing_port_tells_a_plain_client_why(caplog: pytest.LogCaptureFixture) -> None:
    """S41."""
    async with port(tls_mode="enforcing") as (number, _):
        assert await ask(number, trusting()) == b"hello"
        client = RemotingClient()
        for _ in range(3):  # a client asks more than once, and each time waits for an answer
            answer = await client.invoke(f"127.0.0.1:{number}", RemotingCommand.request(ECHO), timeout_s=30)
            assert answer.code == ResponseCode.NO_PERMISSION
            assert "TLS" in (answer.remark or "")
        await client.close()
    refusals = [record for record in caplog.records if getattr(record, "event", "") == "plain_connection_refused"]
    assert len(refusals) == 1


@on_both_loops
@pytest.mark.parametrize("how", ["asks too often", "stays"])
async def test_a_refused_plain_client_is_sent_away_in_the_end(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asks_too_often = how == "asks too often"
    request_count = 3 * tls_listener.REFUSALS_MAX if asks_too_often else 1
    limits: list[asyncio.Timeout] = []

    def limit(seconds: float) -> asyncio.Timeout:
        """Far longer than meant: the test ends it, when the answer has come."""
        limits.append(timeout(seconds + 120))
        return limits[-1]

    monkeypatch.setattr(tls_listener, "timeout", limit)
    async with port(tls_mode="enforcing") as (number, _):
        peer = await Peer.connect(number)
        peer.write(b"".join(RemotingCommand.request(ECHO).encode() for _ in range(request_count)))
        for _ in range(min(request_count, tls_listener.REFUSALS_MAX)):
            assert (await peer.read()).code == ResponseCode.NO_PERMISSION
        if not asks_too_often:
            limits[-1].reschedule(asyncio.get_running_loop().time())
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await peer.read()
        await peer.close()


@on_both_loops
async def test_the_first_byte_may_come_late_and_the_rest_in_pieces() -> None:
    async with port() as (number, _):
        peer = await Peer.connect(number)
        await asyncio.sleep(0.05)  # a peer may be silent for a while before its first byte
        request = RemotingCommand.request(ECHO, None, b"slow")
        for byte in request.encode():
            peer.write(bytes([byte]))
            await asyncio.sleep(0)
        assert (await peer.read()).body == b"slow"
        await peer.close()


@on_both_loops
async def test_a_silent_client_is_sent_away_and_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """S37."""
    monkeypatch.setattr(tls_listener, "ARRIVING_MAX", 5)
    async with port() as (number, _):
        silent = [await asyncio.open_connection("127.0.0.1", number) for _ in range(20)]
        assert await ask(number, trusting()) == b"hello"
        monkeypatch.setattr(tls_listener, "FIRST_BYTE_SECONDS_MAX", 0.2)
        silent += [await asyncio.open_connection("127.0.0.1", number) for _ in range(5)]
        for reader, writer in silent:
            assert await asyncio.wait_for(reader.read(), 30) == b""
            writer.close()
        monkeypatch.setattr(tls_listener, "FIRST_BYTE_SECONDS_MAX", 30.0)
        assert await ask(number, None) == b"hello"


@on_both_loops
async def test_a_handshake_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_listener, "HANDSHAKE_SECONDS_MAX", 0.2)
    async with port() as (number, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(b"\x16\x03\x01")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(b"\x16" + b"nonsense" * 100)  # no handshake at all: an alert, then the end
        await asyncio.wait_for(reader.read(), 30)
        writer.close()
        monkeypatch.setattr(tls_listener, "HANDSHAKE_SECONDS_MAX", 30.0)
        assert await ask(number, trusting()) == b"hello"


@on_both_loops
async def test_closing_sends_away_who_is_still_arriving() -> None:
    async with port() as (number, _):
        silent = await asyncio.open_connection("127.0.0.1", number)
        shaking = await asyncio.open_connection("127.0.0.1", number)
        shaking[1].write(b"\x16\x03\x01")
        assert await ask(number, trusting()) == b"hello"
    for reader, writer in (silent, shaking):
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
    with pytest.raises(ConnectError):
        await ask(number, None)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_old_protocol_versions_are_refused() -> None:
    """S41."""
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(authority() / "ca.pem")
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    async with port() as (number, _):
        with pytest.raises(ConnectError):
            await ask(number, old)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        assert await ask(number, old) == b"hello"


async def test_a_client_needs_a_certificate_where_one_is_required() -> None:
    fields = {"tls_client_auth": "require", "tls_trust": str(authority() / "ca.pem")}
    async with port(**fields) as (number, _):
        assert await ask(number, trusting(with_certificate=True)) == b"hello"
        for nobody in (
            trusting(),
            TlsConfig(verify=False, cert=authority("theirs") / "client.pem", key=authority("theirs") / "client.key"),
        ):
            with pytest.raises(GantryError):
                await ask(number, nobody)


async def test_an_optional_certificate_is_verified_when_there_is_one() -> None:
    theirs = authority("theirs")
    async with port(tls_client_auth="optional", tls_trust=str(authority() / "ca.pem")) as (number, _):
        assert await ask(number, trusting()) == b"hello"
        assert await ask(number, trusting(with_certificate=True)) == b"hello"
        with pytest.raises(GantryError):
            await ask(number, TlsConfig(verify=False, cert=theirs / "client.pem", key=theirs / "client.key"))


async def test_clients_refuse_a_server_they_do_not_trust() -> None:
    async with port() as (number, _):
        with pytest.raises(ConnectError, match="certificate verify failed"):
            await ask(number, trusting(name="theirs"))
        assert await ask(number, TlsConfig(verify=False)) == b"hello"


async def test_new_files_hold_for_new_connections_and_broken_ones_for_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"

    def put(name: str) -> None:
        for kind in ("pem", "key"):
            shutil.copy(authority(name) / f"server.{kind}", tmp_path / f"server.{kind}")

    put("ours")
    async with port(tls_cert=str(cert), tls_key=str(key)) as (number, tls):
        before = RemotingClient(tls=trusting())
        await before.invoke(f"127.0.0.1:{number}", RemotingCommand.request(ECHO), timeout_s=30)
        put("theirs")
        tls.look()
        assert await ask(number, trusting(name="theirs")) == b"hello"
        with pytest.raises(ConnectError):
            await ask(number, trusting())
        answer = await before.invoke(f"127.0.0.1:{number}", RemotingCommand.request(ECHO), timeout_s=30)
        assert answer.code == 0  # it was open before
        await before.close()

        caplog.clear()
        cert.write_text("half a certif")
        tls.look()
        tls.look()
        events = [getattr(record, "event", "") for record in caplog.records]
        assert events.count("tls_certificate_unusable") == 1
        assert await ask(number, trusting(name="theirs")) == b"hello"
        cert.unlink()
        tls.look()
        assert await ask(number, trusting(name="theirs")) == b"hello"
        put("ours")
        tls.look()
        assert await ask(number, trusting()) == b"hello"


async def test_the_files_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_module, "WATCH_SECONDS", 0.02)
    for kind in ("pem", "key"):
        shutil.copy(authority() / f"server.{kind}", tmp_path)
    fields = {"tls_cert": str(tmp_path / "server.pem"), "tls_key": str(tmp_path / "server.key")}
    async with port(**fields) as (number, tls):
        watch = asyncio.create_task(tls.run())
        for kind in ("key", "pem"):  # in between they don't belong together
            shutil.copy(authority("theirs") / f"server.{kind}", tmp_path)
            await asyncio.sleep(0.05)  # the watch looks in between, and finds files that do not fit
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(ConnectError):
                    assert await ask(number, trusting(name="theirs")) == b"hello"
                    break
                await asyncio.sleep(0.02)
        watch.cancel()


async def test_a_handshake_at_a_port_without_tls_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    lanes = Lanes({"fast": LaneLimits(1000)})
    server = RemotingServer(lanes, host="127.0.0.1", port=0)
    number = await server.open()
    server.serve(ROUTES)
    with pytest.raises(ConnectError):
        await ask(number, trusting())
    await server.close()
    await lanes.close()
    assert "TLS record" in next(getattr(record, "why", "") for record in caplog.records)


async def test_running_out_of_descriptors_is_only_a_pause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "ACCEPT_PAUSE_S", 0.05)
    refusals = iter([OSError(24, "Too many open files")])
    accept = socket.socket.accept

    def scarce(self: socket.socket) -> tuple[socket.socket, Any]:
        for refusal in refusals:
            raise refusal
        return accept(self)

    async with port() as (number, _):
        monkeypatch.setattr(socket.socket, "accept", scarce)
        caplog.set_level(logging.ERROR)
        started = time.monotonic()
        assert await ask(number, None) == b"hello"
        assert time.monotonic() - started >= 0.04
        assert [record for record in caplog.records if getattr(record, "event", "") == "accept_failed"]


@pytest.mark.parametrize(
    ("fields", "start", "event"),
    [
        ({}, b"\x16" + b"\xff" * 100, "tls_connection_not_made"),
        ({"tls_mode": "enforcing"}, b"\0\0\0\1", "plain_connection_refused"),
    ],
)
async def test_connections_that_come_to_nothing_write_a_few_lines(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], start: bytes, event: str
) -> None:
    monkeypatch.setattr(log_limit, "WINDOW_S", 1e6)  # one window, however slow the machine is
    caplog.set_level(logging.WARNING)
    async with port(**fields) as (number, _):
        for _ in range(3 * LINES_MAX):
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(start)
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(30):
                    while await reader.read(1000):
                        pass
            writer.close()
    lines = [record for record in caplog.records if getattr(record, "event", "") == event]
    assert len(lines) == LINES_MAX
    assert vars(lines[0])["peer"].startswith("127.0.0.1:")
