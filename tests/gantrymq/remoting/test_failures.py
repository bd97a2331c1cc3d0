"""What an error about a peer tells: its role, the request, what may help. Over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator

import pytest

from gantrymq.errors import ConnectError, RequestTimeout, ResponseError
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import BROKER, NAME_SERVER, SPEAKS_NO_TLS, WANTS_TLS, refused, role_of
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.remoting.scripted import PatientClient, scripted_server, silence

ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


@contextlib.asynccontextmanager
async def hanging_up() -> AsyncIterator[str]:
    """The address of a server that reads something and closes, as one does that expects another protocol."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def failure_of(address: str, code: int, *, tls: ssl.SSLContext | None = None) -> ConnectError:
    client = RemotingClient(tls=tls)
    with pytest.raises(ConnectError) as caught:
        await client.invoke(address, RemotingCommand.request(code), timeout_s=30)
    await client.close()
    return caught.value


async def test_tls_to_a_port_without_is_named_as_what_it_is() -> None:
    async with hanging_up() as address:
        failure = await failure_of(address, ROUTE, tls=ssl.create_default_context())
    assert str(failure).startswith(f"name server {address}: TLS handshake failed: ")
    assert str(failure).endswith(f"({SPEAKS_NO_TLS})")


async def test_no_tls_to_a_port_that_hangs_up_at_once_asks_about_tls() -> None:
    async with hanging_up() as address:
        failure = await failure_of(address, RequestCode.SEND_MESSAGE_V2)
    assert str(failure) == f"broker {address}: closed by the peer ({WANTS_TLS})"


async def test_a_port_without_a_listener_is_named_by_role() -> None:
    address = closed_port()
    failure = await failure_of(address, ROUTE)
    assert str(failure) == f"name server {address}: connection refused (is it running, and is this its port?)"
    assert isinstance(failure.__cause__, ConnectionRefusedError)


async def test_a_host_that_does_not_exist_is_a_wrong_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def not_found(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", not_found)
    assert (await failure_of("nowhere:9876", ROUTE)).hint == "is the host's name right?"


async def test_silence_names_the_request() -> None:
    async with scripted_server(silence) as server:
        client = PatientClient()
        await client.invoke_oneway(server.address, RemotingCommand.request(1))  # connecting is another call's time
        with pytest.raises(RequestTimeout) as caught:
            await client.invoke(server.address, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2), timeout_s=0.05)
        await client.close()
    assert str(caught.value).startswith(f"broker {server.address} did not answer SEND_MESSAGE_V2 within 0.0")


async def test_a_request_that_cannot_be_encoded_is_told_at_once_and_leaves_the_connection_alone() -> None:
    async with scripted_server(silence) as server:
        client = PatientClient()
        await client.invoke_oneway(server.address, RemotingCommand.request(1))
        connection = client.open_connection(server.address)
        assert connection is not None
        with pytest.raises(TypeError):
            await client.invoke(server.address, RemotingCommand.request(10, {}, "text"), timeout_s=0.05)  # type: ignore[arg-type]
        assert connection.in_flight == 0
        with pytest.raises(RequestTimeout):
            await client.invoke(server.address, RemotingCommand.request(10), timeout_s=0.1)
        await client.close()


def test_a_brokers_address_among_the_name_servers_is_guessed() -> None:
    answer = RemotingCommand.request(ROUTE).reply(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED, "request type 105 not supported"
    )
    assert str(refused(answer, "h:10911", ROUTE)) == (
        "name server h:10911 answered GET_ROUTEINFO_BY_TOPIC with REQUEST_CODE_NOT_SUPPORTED (3): "
        "request type 105 not supported (is this a broker's address? Give the name servers', whose usual port is 9876)"
    )


def test_numbers_without_a_name_stay_numbers() -> None:
    failure = refused(RemotingCommand.request(888).reply(999), "h:1", 888)
    assert isinstance(failure, ResponseError)
    assert str(failure) == "broker h:1 answered request 888 with code 999: no remark"


@pytest.mark.parametrize(
    ("code", "role"),
    [
        (RequestCode.SEND_MESSAGE_V2, BROKER),
        (RequestCode.REGISTER_BROKER, NAME_SERVER),
        (RequestCode.GET_NAMESRV_CONFIG, NAME_SERVER),
        (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, ""),
    ],
)
def test_the_role_follows_from_the_request(code: RequestCode, role: str) -> None:
    assert role_of(code) == role


@pytest.mark.parametrize(
    ("first", "who"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server"), (b"-ERR unknown command\r\n", "a Redis server")],
)
async def test_another_kind_of_server_is_named_as_what_it_is(first: bytes, who: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(first)
        await writer.drain()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        failure = await failure_of(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", ROUTE)
    assert f"{who} answers there, neither a name server nor a broker" in str(failure)
