"""What the compiled reader reads is served as by the Python path, and what it can't do goes to the transport."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from appliance.remoting import lanes
from appliance.remoting.connection import ServerConnection
from appliance.remoting.server import RemotingServer
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import JSON, RemotingCommand
from tests.appliance.fast_path import signed
from tests.appliance.fast_path.pulls import fill, pull
from tests.appliance.fast_path.reader.read_side import ReadSide
from tests.appliance.fast_path.rig import Pair, frames, pair_of_brokers
from tests.appliance.fast_path.sends import batch, first_messages, send
from tests.harness import ServingCluster, serving
from tests.waiting import until

TOPIC = "orders"


@pytest.fixture(autouse=True)
def no_slice_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is parked because a busy machine ended a slice early."""
    monkeypatch.setattr(lanes, "READ_AHEAD_SECONDS", 60.0)
    monkeypatch.setattr(lanes, "TURN_SECONDS", 60.0)


@contextlib.contextmanager
def read_pair(folder: Path, **settings: Any) -> Iterator[tuple[Pair, ReadSide]]:
    with pair_of_brokers(folder, **settings) as pair:
        pair.fast = side = ReadSide(pair.fast)
        try:
            yield pair, side
        finally:
            side.close()


def other(number: int) -> bytes:
    fields = {"topic": TOPIC, "queueId": "0"}
    return RemotingCommand(RequestCode.GET_MAX_OFFSET, fields, b"", None, number, 0, "JAVA", 401, JSON).encode()


async def test_a_plain_connection_is_read_by_the_twin_once_something_of_it_was_served(
    compiled: ModuleType, tmp_path: Path
) -> None:
    with read_pair(tmp_path) as (pair, side):
        await pair.receive(send(1))  # a topic's first send is Python's
        assert not side.socket.is_paused
        await pair.receive(send(2))
        assert side.socket.is_paused, "its transport reads no more"
        before = side.served_fast
        await pair.receive(send(3) + batch(4, [b"1", b"2"]))
        assert side.served_fast == before + 2
        pair.check()


@pytest.mark.parametrize("cut", [1, 4, 7, 60, -1])
async def test_requests_that_are_cut_or_unusual_are_served_in_their_order(
    compiled: ModuleType, tmp_path: Path, cut: int
) -> None:
    with read_pair(tmp_path) as (pair, _):
        await fill(pair, 20)
        stream = send(6) + other(7) + send(8, flag=2) + pull(9, 0) + send(10, b"x", "", h="no number")
        for number in range(3):
            await pair.receive(stream[: cut + number])
            await pair.receive(stream[cut + number :])
            await pair.receive(send(20 + number))
        pair.check()


async def test_many_connections_are_served_with_one_call(compiled: ModuleType, tmp_path: Path) -> None:
    """Their messages, of two topics, stand in the log in the order in which they came; each gets its own answers."""
    with read_pair(tmp_path) as (pair, side):
        await fill(pair, 40)
        plain = [pair.plain.connection]
        for _ in range(5):
            pair.connect()
            await pair.receive(send(99))
            plain.append(pair.plain.connection)
        frames = [
            send(1, e="0") + send(2, b="payments", e="0"),
            pull(3, 0),
            send(4, b"y" * 5000),
            send(6) + pull(6, 2),
            batch(7, [b"1"]),
            send(8, flag=2) + send(9, b="a"),
        ]
        before = [len(wire.written) for wire in side.wires]
        for wire, connection, frame in zip(side.wires, plain, frames, strict=True):
            wire.there.sendall(frame)
            connection.data_received(frame)
        side.reader.drain()
        opaques = []
        for wire, start in zip(side.wires, before, strict=True):
            wire.push()
            opaques.append(sorted(opaques_of(bytes(wire.written[start:]))))
        assert opaques == [[1, 2], [100_003], [4], [6, 100_006], [7], [9]]
        await side.serve()
        await pair.plain.receive(b"")
        state = side.state()
        for name, value in pair.plain.state().items():
            assert state[name] == value, name


@pytest.mark.parametrize("code", [ResponseCode.SUCCESS, ResponseCode.FLUSH_SLAVE_TIMEOUT])
async def test_what_came_together_waits_together_and_each_gets_its_own_answers(
    compiled: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ResponseCode
) -> None:
    with read_pair(tmp_path) as (pair, side):
        await fill(pair, 10)
        for number in range(4):
            side.connect()
            await side.receive(send(90 + number))
        waits: list[tuple[int, Callable[[ResponseCode], None]]] = []
        put_waits = side.broker.put_waits
        monkeypatch.setattr(put_waits, "is_needed", True)
        monkeypatch.setattr(put_waits, "when_stored", lambda end, callback: waits.append((end, callback)))
        before = [len(wire.written) for wire in side.wires]
        for number, wire in enumerate(side.wires):
            wire.there.sendall(send(10 * number) + send(10 * number + 1))
        side.reader.drain()
        ((end, callback),) = waits
        assert end == side.broker.store.max_physical_offset, "of the last one: who has that has all"
        side.wires[1].unsent += b"before"
        side.connections[1].may_hold_unsent = True
        side.connections[2].close("gone meanwhile")
        callback(code)
        await side.serve()
        told = [bytes(wire.written[start:]) for wire, start in zip(side.wires, before, strict=True)]
        assert told[2] == b""
        assert told[1].startswith(b"before"), "what was written before comes first"
        for number, data in enumerate((told[0], told[1][6:], told[3], told[4])):
            number += number > 1
            answers = list(frames(data))
            assert [each.opaque for each in answers] == [10 * number, 10 * number + 1]
            assert {each.code for each in answers} == {code}


def opaques_of(data: bytes) -> list[int]:
    found = []
    while data:
        end = 4 + int.from_bytes(data[:4])
        found.append(RemotingCommand.decode(data[4:end]).opaque)
        data = data[end:]
    return found


async def test_answers_that_a_peer_does_not_read_wait_in_their_order(compiled: ModuleType, tmp_path: Path) -> None:
    """The socket takes a part of a pull's answer; what comes after it queues up behind, also other answers."""
    with read_pair(tmp_path) as (pair, side):
        await fill(pair, 300, body_bytes=20_000)
        await pair.receive(send(6))
        side.socket.is_read = False
        for number in range(10):
            await pair.receive(pull(200 + number, number) + send(300 + number, e="0"))
        assert side.socket.unsent and side.connection.may_hold_unsent
        side.socket.is_read = True
        while side.socket.unsent:
            side.socket.push()
        await pair.receive(send(400))
        assert not side.connection.may_hold_unsent
        pair.check()


async def test_nothing_is_served_on_arrival_when_a_lane_is_full(compiled: ModuleType, tmp_path: Path) -> None:
    with read_pair(tmp_path) as (pair, side):
        await first_messages(pair)
        await pair.receive(send(5))
        lane, before = side.broker.lanes.by_name["send"], side.served_fast
        said, put = len(side.socket.written), side.broker.store.stats.put_times
        lane.running += lane.capacity
        side.socket.there.sendall(send(6))
        side.reader.drain()
        lane.running -= lane.capacity
        await side.serve()
        assert (side.served_fast, side.broker.store.stats.put_times) == (before, put)
        assert b"[OVERLOAD]" in side.socket.written[said:]


async def test_without_budget_a_connection_is_parked_and_served_in_its_turn(
    compiled: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_pair(tmp_path) as (pair, side):
        await first_messages(pair)
        await pair.receive(send(5))
        before = side.served_fast
        monkeypatch.setattr(lanes, "READ_AHEAD_SECONDS", -1.0)
        monkeypatch.setattr(lanes, "AT_ONCE_SECONDS", -1.0)
        side.socket.there.sendall(send(7))
        side.reader.drain()
        assert side.served_fast == before
        assert side.broker.lanes.parked_count == 1
        monkeypatch.setattr(lanes, "READ_AHEAD_SECONDS", 60.0)
        await side.serve()
        assert side.served_fast == before + 1
        await pair.plain.receive(send(7))
        pair.check()


async def test_what_was_served_is_charged_as_lanes_do(compiled: ModuleType, tmp_path: Path) -> None:
    with read_pair(tmp_path) as (pair, side):
        await first_messages(pair)
        await pair.receive(send(5))
        usage, lane_set = side.connection.usage, side.broker.lanes
        spent, address, served, at_once = usage.spent, usage.address.spent, lane_set.served, lane_set.at_once_seconds
        side.socket.there.sendall(send(6) + send(7))
        side.reader.drain()
        seconds = usage.spent - spent
        assert 0 < seconds < 60
        assert usage.address.spent - address == pytest.approx(seconds)
        assert lane_set.served - served == pytest.approx(seconds)
        assert lane_set.at_once_seconds - at_once == pytest.approx(seconds)
        assert usage.request_seconds > 0


async def test_signed_requests_are_checked_for_each_connection(compiled: ModuleType, tmp_path: Path) -> None:
    with read_pair(tmp_path, accounts=signed.ACCOUNTS) as (pair, _):
        await signed.readable_messages(pair)
        for number, account in enumerate((signed.RIGHT, signed.ADMIN, signed.RIGHT)):
            pair.connect()
            await pair.receive(signed.signed(account, signed.request(10 + number)))
            await pair.receive(
                signed.signed(account, signed.request(20 + number)) + signed.request(30 + number).encode()
            )
        pair.check()


async def test_a_bug_costs_one_connection_and_no_other(
    compiled: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_pair(tmp_path) as (pair, side):
        await fill(pair, 20)
        pair.connect()
        await pair.receive(send(6))
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

        def broken(*_: object) -> None:
            raise RuntimeError("a bug")

        first, second = side.wires[0], side.wires[1]
        before = len(second.written)
        with monkeypatch.context() as patch:
            patch.setattr(ServerConnection, "take_rest", broken)
            first.there.sendall(send(7) + other(8))
            second.there.sendall(send(9))
            side.reader.drain()
        second.push()
        assert first.is_over and not second.is_over
        assert [str(context["exception"]) for context in told] == ["a bug"]
        assert opaques_of(bytes(second.written[before:])) == [9]


# -- real connections -------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def raw(cluster: ServingCluster) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = cluster.broker_address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answer(reader: asyncio.StreamReader) -> RemotingCommand:
    size = int.from_bytes(await reader.readexactly(4))
    return RemotingCommand.decode(await reader.readexactly(size))


async def ask(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], frame: bytes) -> RemotingCommand:
    streams[1].write(frame)
    return await answer(streams[0])


@pytest.fixture
def admitted(monkeypatch: pytest.MonkeyPatch) -> list[ServerConnection]:
    """All connections that servers take."""
    taken: list[ServerConnection] = []
    admit = RemotingServer.admit

    def note(server: RemotingServer, connection: ServerConnection) -> bool:
        taken.append(connection)
        return admit(server, connection)

    monkeypatch.setattr(RemotingServer, "admit", note)
    return taken


async def be_watched(streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    for number in range(3):  # a topic's first send is Python's
        assert (await ask(streams, send(number, b=TOPIC, e="0"))).code == 0


@pytest.mark.parametrize("how", ["half-closed", "reset", "closed"])
async def test_the_end_of_a_stream_is_the_transports(
    compiled: ModuleType, tmp_path: Path, admitted: list[ServerConnection], how: str
) -> None:
    """Also with requests before it, which are served."""
    async with serving(tmp_path) as cluster, raw(cluster) as streams:
        await be_watched(streams)
        (connection,) = [each for each in admitted if each.is_watched]
        put = cluster.broker.store.stats.put_times
        streams[1].write(send(7) + send(8))
        if how == "half-closed":
            streams[1].write_eof()
        elif how == "reset":
            await until(lambda: cluster.broker.store.stats.put_times == put + 2)
            sock = streams[1].get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            streams[1].transport.abort()
        else:
            streams[1].close()
        await until(lambda: connection.is_gone and cluster.broker.store.stats.put_times == put + 2)
        assert not connection.is_watched
        async with raw(cluster) as again:  # the descriptor is another connection's now
            await be_watched(again)


async def test_who_does_not_read_its_answers_is_not_read_and_later_gets_them_all(
    compiled: ModuleType, tmp_path: Path, admitted: list[ServerConnection]
) -> None:
    async with serving(tmp_path, broker={"write_high_bytes": 64 * 1024}) as cluster, raw(cluster) as streams:
        await be_watched(streams)
        body = b"x" * 30_000
        for number in range(20):
            assert (await ask(streams, send(number, body, "", b=TOPIC, e="1"))).code == 0
        (connection,) = [each for each in admitted if each.is_watched]
        streams[1].transport.pause_reading()  # type: ignore[attr-defined]
        count = 0
        while connection.is_watched:
            count += 1
            streams[1].write(pull(count, 0, topic=TOPIC, queueId="1", consumerGroup="TOOLS_CONSUMER"))
            await asyncio.sleep(0)
            assert count < 10_000
        streams[1].transport.resume_reading()  # type: ignore[attr-defined]
        assert sorted([(await answer(streams[0])).opaque for _ in range(count)]) == [
            100_001 + number for number in range(count)
        ]
        assert (await ask(streams, send(7))).code == 0
        await until(lambda: connection.is_watched)


async def test_with_sync_flush_what_the_twin_reads_is_answered_when_the_disk_has_it(
    compiled: ModuleType, tmp_path: Path, admitted: list[ServerConnection]
) -> None:
    async with serving(tmp_path, store={"flush_disk_type": "SYNC_FLUSH"}) as cluster, raw(cluster) as streams:
        await be_watched(streams)
        assert [each.is_watched for each in admitted].count(True) == 1
        store = cluster.broker.store
        streams[1].write(b"".join(send(number, b"x" * 2000, b=TOPIC, e="0") for number in range(100, 164)))
        came = set()
        for _ in range(64):
            told = await answer(streams[0])
            assert told.code == 0
            assert int(told.ext_fields["msgId"][-16:], 16) < store.flushed_offset, "its end is not on the disk yet"
            came.add(told.opaque)
        assert came == set(range(100, 164))


async def test_what_was_answered_before_a_broker_stops_is_there_when_it_starts_again(
    compiled: ModuleType, tmp_path: Path
) -> None:
    """It stops in the middle of a stream of sends that the twin reads."""
    answered = []
    async with serving(tmp_path) as cluster, raw(cluster) as streams:
        await be_watched(streams)
        streams[1].write(b"".join(send(number, b"x" * 1000, b=TOPIC, e="0") for number in range(100, 1100)))
        answered.append(await answer(streams[0]))
        await cluster.broker.server.close()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                answered.append(await answer(streams[0]))
    assert {each.code for each in answered} == {0}
    async with serving(tmp_path) as cluster:
        assert cluster.broker.store.max_offset(TOPIC, 0) > max(int(each.ext_fields["queueOffset"]) for each in answered)


async def test_a_server_that_stops_closes_what_the_twin_reads(compiled: ModuleType, tmp_path: Path) -> None:
    async with serving(tmp_path) as cluster, raw(cluster) as streams:
        await be_watched(streams)
        reader = cluster.broker.server.reader
        assert reader is not None
        await cluster.broker.server.close()
        assert await streams[0].read() == b""
        assert cluster.broker.server.reader is None and reader.fileno() == -1
        reader.drain()


def test_what_can_not_be_watched_is_left_alone(compiled: ModuleType, tmp_path: Path) -> None:
    """A closed descriptor, a file: epoll refuses them."""
    with pair_of_brokers(tmp_path) as pair:
        side = ReadSide(pair.fast)
        try:
            with (tmp_path / "file").open("wb") as file:
                assert not side.reader.watch(side.connection, file.fileno())
                number = file.fileno()
            assert not side.reader.watch(side.connection, number)
            assert not side.reader.watch(side.connection, -1)
            side.reader.unwatch(number)
            side.reader.unwatch(-1)
            side.reader.unwatch(1 << 20)
        finally:
            side.close()
        assert not side.reader.watch(side.connection, 0)
        side.reader.drain()
