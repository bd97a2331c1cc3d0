"""RemotingClient over real sockets: calls, deadlines, broken connections, requests from the server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gantrymq.errors import ClientClosed, ConnectError, RequestTimeout
from gantrymq.remoting import connection
from gantrymq.remoting.client import split_address
from gantrymq.remoting.command import ROCKETMQ, RemotingCommand
from gantrymq.remoting.signature import SIGNATURE, Credentials
from tests.conftest import time_limit
from tests.gantrymq.client.ports import silent_host
from tests.gantrymq.remoting.scripted import PatientClient, ScriptedServer, echo, scripted_server, silence
from tests.waiting import WITHIN_S, until


def request(n: int = 0, body: bytes = b"") -> RemotingCommand:
    return RemotingCommand.request(10, {"n": str(n)}, body)


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server(echo) as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[PatientClient]:
    client = PatientClient()
    yield client
    await client.close()


async def test_many_calls_share_one_connection_and_each_gets_its_own_answer(
    server: ScriptedServer, client: PatientClient
) -> None:
    answers = await asyncio.gather(*(client.invoke(server.address, request(n), timeout_s=WITHIN_S) for n in range(500)))
    assert [answer.ext_fields["n"] for answer in answers] == [str(n) for n in range(500)]
    assert len(server.writers) == 1


async def test_answers_may_come_in_any_order(client: PatientClient) -> None:
    held: list[RemotingCommand] = []

    def backwards(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        held.append(command)
        if len(held) == 10:
            for one in reversed(held):
                writer.write(one.reply(ext_fields=one.ext_fields).encode())

    async with scripted_server(backwards) as server:
        answers = await asyncio.gather(*(client.invoke(server.address, request(n)) for n in range(10)))
        assert [answer.ext_fields["n"] for answer in answers] == [str(n) for n in range(10)]


async def test_a_call_without_an_answer_fails_at_its_deadline_and_not_before(client: PatientClient) -> None:
    async with scripted_server(silence) as server:
        await client.invoke_oneway(server.address, request())  # connecting is another call's time
        started = time.monotonic()
        with pytest.raises(RequestTimeout) as caught:
            await client.invoke(server.address, request(), timeout_s=0.2)
        assert 0.15 < time.monotonic() - started < time_limit(10)
        assert (caught.value.address, caught.value.code) == (server.address, 10)


async def test_a_peer_that_says_nothing_is_given_up_with_all_its_calls(
    monkeypatch: pytest.MonkeyPatch, client: PatientClient
) -> None:
    monkeypatch.setattr(connection, "GIVE_UP_S", 0.2)
    async with scripted_server(silence) as server:
        await client.invoke_oneway(server.address, request())  # connecting is another call's time
        long = asyncio.create_task(client.invoke(server.address, request()))
        for timeout_s in (0.15, 0.15):  # neither of them alone waits for long enough
            with pytest.raises(RequestTimeout):
                await client.invoke(server.address, request(), timeout_s=timeout_s)
        with pytest.raises(ConnectError):
            await long


async def test_a_call_that_has_little_time_ends_no_other_call(client: PatientClient) -> None:
    """A producer's last try has what is left of its time. Others would be sent, and stored, a second time."""
    held: list[RemotingCommand] = []

    def after_the_second(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        if command.ext_fields["n"] == "2":
            writer.write(b"".join(one.reply().encode() for one in held))
        held.append(command)

    async with scripted_server(after_the_second) as server:
        await client.invoke_oneway(server.address, request(0))
        patient = asyncio.create_task(client.invoke(server.address, request(1)))
        with pytest.raises(RequestTimeout):
            await client.invoke(server.address, request(1), timeout_s=0.05)
        await client.invoke_oneway(server.address, request(2))
        await patient
        assert len(server.writers) == 1


async def test_a_late_answer_fails_one_call_and_leaves_the_connection(client: PatientClient) -> None:
    def one_of_two(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        if command.ext_fields["n"] == "1":
            writer.write(command.reply().encode())

    async with scripted_server(one_of_two) as server:
        await client.invoke_oneway(server.address, request())  # connecting is another call's time
        late = asyncio.create_task(client.invoke(server.address, request(0), timeout_s=1))
        await asyncio.sleep(0)
        await client.invoke(server.address, request(1))
        with pytest.raises(RequestTimeout):
            await late
        await client.invoke(server.address, request(1))
        assert len(server.writers) == 1


async def test_a_connection_that_is_being_made_is_given_up_when_nothing_is_wanted_there(client: PatientClient) -> None:
    with silent_host() as address:
        calls = [asyncio.create_task(client.invoke(address, request())) for _ in range(2)]
        await until(lambda: any(each.get_name() == f"connect {address}" for each in asyncio.all_tasks()))
        await asyncio.sleep(0.1)  # until both wait, and the kernel has dropped their requests
        client.end_silent(address, 0, "")
        for call in calls:
            with pytest.raises(ConnectError, match="given up"):
                await call


async def test_a_caller_that_is_cancelled_as_its_connection_is_given_up_is_cancelled(client: PatientClient) -> None:
    with silent_host() as address:
        connecting = asyncio.create_task(client.connect(address))
        await asyncio.sleep(0)
        client.end_silent(address, 0, "moved")
        connecting.cancel()
        await asyncio.wait([connecting])
        assert connecting.cancelled(), "or what awaits it goes on after its end"


async def test_a_broken_connection_fails_its_calls_and_the_next_call_makes_a_new_one(client: PatientClient) -> None:
    def cut(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        if len(server.writers) == 1:
            writer.close()
        else:
            echo(server, writer, command)

    async with scripted_server(cut) as server:
        with pytest.raises(ConnectError):
            await client.invoke(server.address, request())
        assert (await client.invoke(server.address, request(7))).ext_fields["n"] == "7"
        assert len(server.writers) == 2


async def test_garbage_from_the_peer_closes_the_connection(client: PatientClient) -> None:
    def garbage(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with scripted_server(garbage) as server:
        with pytest.raises(ConnectError, match="bad frame"):
            await client.invoke(server.address, request())


async def test_a_cancelled_caller_does_not_disturb_the_others(server: ScriptedServer, client: PatientClient) -> None:
    tasks = [asyncio.create_task(client.invoke(server.address, request(n))) for n in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [answer.ext_fields["n"] for answer in outcomes[1:] if isinstance(answer, RemotingCommand)] == ["1", "2"]


async def test_more_calls_than_fit_wait_for_room(server: ScriptedServer) -> None:
    client = PatientClient(in_flight_max=4)
    answers = await asyncio.gather(*(client.invoke(server.address, request(n)) for n in range(100)))
    assert [answer.ext_fields["n"] for answer in answers] == [str(n) for n in range(100)]
    await client.close()


async def test_waiting_for_room_ends_at_the_deadline() -> None:
    async with scripted_server(silence) as server:
        client = PatientClient(in_flight_max=1)
        await client.invoke_oneway(server.address, request())  # connecting is another call's time
        first = asyncio.create_task(client.invoke(server.address, request(), timeout_s=3600))
        await asyncio.sleep(0)
        with pytest.raises(RequestTimeout):
            await client.invoke(server.address, request(), timeout_s=0.1)
        await client.close()
        with pytest.raises(ConnectError):
            await first


async def test_large_bodies_travel_both_ways_while_small_calls_go_on(
    server: ScriptedServer, client: PatientClient
) -> None:
    body = bytes(range(256)) * (4 * 4096)
    answers = await asyncio.gather(*(client.invoke(server.address, request(n, body)) for n in range(4)))
    assert all(answer.body == body for answer in answers)


async def test_a_oneway_request_is_marked_and_waits_for_nothing(server: ScriptedServer, client: PatientClient) -> None:
    await client.invoke_oneway(server.address, request(1))
    await client.invoke(server.address, request(2))
    assert [(command.ext_fields["n"], command.is_oneway) for command in server.requests] == [("1", True), ("2", False)]


async def test_oneway_requests_written_before_closing_arrive(server: ScriptedServer) -> None:
    client = PatientClient()
    for n in range(50):
        await client.invoke_oneway(server.address, request(n))
    await client.close()
    async with asyncio.timeout(WITHIN_S):
        while len(server.requests) < 50:
            await asyncio.sleep(0.01)


def asks_back(code: int, *, oneway: bool = False) -> object:
    def script(server: ScriptedServer, writer: asyncio.StreamWriter, command: RemotingCommand) -> None:
        if command.is_response:
            return
        question = RemotingCommand.request(code, {"from": "server"})
        question.opaque = command.opaque  # the two directions count on their own
        writer.write((question.mark_oneway() if oneway else question).encode() + command.reply().encode())

    return script


async def answers_to(server: ScriptedServer, count: int) -> list[RemotingCommand]:
    async with asyncio.timeout(WITHIN_S):
        while len(found := [command for command in server.requests if command.is_response]) < count:
            await asyncio.sleep(0.01)
    return found


async def test_a_request_from_the_server_is_handled_and_answered() -> None:
    async def handler(address: str, command: RemotingCommand) -> RemotingCommand:
        return command.reply(body=address.encode())

    async with scripted_server(asks_back(307)) as server:  # type: ignore[arg-type]
        client = PatientClient(request_handlers={307: handler})
        await client.invoke(server.address, request())
        (answer,) = await answers_to(server, 1)
        assert answer.body == server.address.encode()
        await client.close()


async def test_a_request_without_a_handler_is_answered_as_unsupported(client: PatientClient) -> None:
    async with scripted_server(asks_back(999)) as server:  # type: ignore[arg-type]
        await client.invoke(server.address, request())
        (answer,) = await answers_to(server, 1)
        assert answer.code == 3


async def test_a_handler_that_fails_is_answered_by_a_system_error_without_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(address: str, command: RemotingCommand) -> RemotingCommand:
        raise ValueError("inner detail")

    async with scripted_server(asks_back(307)) as server:  # type: ignore[arg-type]
        client = PatientClient(request_handlers={307: handler})
        await client.invoke(server.address, request())
        (answer,) = await answers_to(server, 1)
        assert (answer.code, answer.remark) == (1, "system error")
        assert "inner detail" in caplog.text
        await client.close()


async def test_a_oneway_request_from_the_server_gets_no_answer() -> None:
    seen = asyncio.Event()

    async def handler(address: str, command: RemotingCommand) -> RemotingCommand:
        seen.set()
        return command.reply()

    async with scripted_server(asks_back(40, oneway=True)) as server:  # type: ignore[arg-type]
        client = PatientClient(request_handlers={40: handler})
        await client.invoke(server.address, request())
        await asyncio.wait_for(seen.wait(), WITHIN_S)
        await client.close()
        assert not any(command.is_response for command in server.requests)


async def test_calls_in_flight_fail_when_the_client_closes_and_later_ones_are_refused() -> None:
    async with scripted_server(silence) as server:
        client = PatientClient()
        await client.invoke_oneway(server.address, request())
        call = asyncio.create_task(client.invoke(server.address, request(), timeout_s=3600))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ConnectError):
            await call
        with pytest.raises(ClientClosed):
            await client.invoke(server.address, request())


async def test_header_encoding_and_signature_are_put_on_every_request(server: ScriptedServer) -> None:
    client = PatientClient(serialize_type=ROCKETMQ, credentials=Credentials("key", "secret"))
    await client.invoke(server.address, request(1))
    await client.invoke_oneway(server.address, request(2))
    await client.close()
    async with asyncio.timeout(WITHIN_S):
        while len(server.requests) < 2:
            await asyncio.sleep(0.01)
    assert all(command.serialize_type == ROCKETMQ and SIGNATURE in command.ext_fields for command in server.requests)


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:x", "host:70000"])
def test_what_is_no_address_is_a_connect_error(address: str) -> None:
    with pytest.raises(ConnectError):
        split_address(address)


def test_ipv6_addresses_are_split() -> None:
    assert split_address("[::1]:10911") == ("::1", 10911)
    assert split_address("broker.example:9876") == ("broker.example", 9876)
