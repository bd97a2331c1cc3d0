"""The first message of a topic: whoever hears that it is stored finds the topic at the name server."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from appliance.bench.frames import send_fields
from appliance.broker.cluster import outer_api
from appliance.broker.topics.topic_announcements import WAIT_S, TopicAnnouncements
from gantrymq import AdminClient, Message, Producer
from gantrymq.message.batch import encode_batch
from gantrymq.remoting.client import RemotingClient
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import RemotingCommand
from tests.appliance.broker.caller import Caller, calling
from tests.gantrymq.client.ports import closed_port
from tests.harness import LocalCluster
from tests.waiting import WITHIN_S, until

ROUNDS = 20
PATIENT = {"register_timeout_ms": 3_600_000}
V1 = {
    "producerGroup": "producers", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
    "sysFlag": "0", "bornTimestamp": "1", "flag": "0", "reconsumeTimes": "0", "unitMode": "false", "properties": "",
}  # fmt: skip
HALF = "TRAN_MSG\x01true\x02PGROUP\x01producers\x02UNIQ_KEY\x01unique"


def knows(caller: Caller, topic: str) -> bool:
    return caller.cluster.namesrv.routes.pickup_topic_route(topic) is not None


@pytest.fixture
def patient_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for its name servers as long as a test may: they share a loop that may stand for a second."""
    monkeypatch.setattr(outer_api, "TopicAnnouncements", functools.partial(TopicAnnouncements, wait_s=WITHIN_S))


@pytest.mark.usefixtures("patient_broker")
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (RequestCode.SEND_MESSAGE, {}),
        (RequestCode.SEND_MESSAGE_V2, {}),
        (RequestCode.SEND_BATCH_MESSAGE, {"m": "true"}),
        (RequestCode.SEND_MESSAGE_V2, {"i": "DELAY\x013"}),
        (RequestCode.SEND_MESSAGE_V2, {"i": "TIMER_DELAY_SEC\x0160"}),
        (RequestCode.SEND_MESSAGE_V2, {"i": HALF}),
    ],
)
async def test_each_kind_of_send_is_acknowledged_when_the_name_server_knows_the_topic(
    tmp_path: Path, flush: str, code: RequestCode, changes: dict[str, str]
) -> None:
    async with calling(tmp_path, store={"flush_disk_type": flush}) as caller:
        for number in range(3):
            topic = f"T{number}"
            body = encode_batch([Message(topic, b"x")]) if "m" in changes else b"x"
            if code is RequestCode.SEND_MESSAGE:
                fields = V1 | {"topic": topic}
            else:
                fields = send_fields("producers", topic, 0, "") | changes
            answer = await caller.ask(RemotingCommand.request(code, fields, body))
            assert (answer.code, knows(caller, topic)) == (0, True), answer.remark


async def test_a_topic_that_was_made_by_one_way_sends_is_told_too(caller: Caller) -> None:
    request = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_fields("producers", "T", 0, ""), b"x")
    client = RemotingClient()
    await client.invoke_oneway(caller.cluster.broker_address, request, timeout_s=WITHIN_S)
    await until(lambda: knows(caller, "T"))
    await client.close()
    answer = await caller.send("T", b"second")
    assert (answer.code, answer.ext_fields["queueOffset"]) == (0, "1")


async def test_a_refused_first_message_is_refused(caller: Caller) -> None:
    answer = await caller.send("fresh", b"x", e="99")
    assert "queueId[99] is illegal" in (answer.remark or "")
    dead = await caller.send("%RETRY%readers", b"x", l="16", j="99")
    assert dead.code == 0


async def test_the_first_of_many_is_stored_first(caller: Caller) -> None:
    answers = await asyncio.gather(*(caller.send("T", b"%d" % number) for number in range(20)))
    assert [answer.ext_fields["queueOffset"] for answer in answers] == [str(number) for number in range(20)]
    assert [message.body for message in await caller.read("T")] == [b"%d" % number for number in range(20)]


async def test_the_route_of_processes_is_there_at_once(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        async with AdminClient(cluster.namesrv_address) as admin, Producer(cluster.namesrv_address) as producer:
            in_time = 0
            for number in range(ROUNDS):
                began = time.monotonic()
                await producer.send(Message(f"T{number}", b"x"))
                if time.monotonic() - began < 0.9 * WAIT_S:  # a broker that waited so long in vain answers without
                    assert (await admin.topics.route(f"T{number}")).queue_datas
                    in_time += 1
            assert in_time


class Forwarder:
    """A way to a name server that can be blocked: what is sent then waits."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
            with contextlib.closing(far_writer):
                await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            await self.is_open.wait()
            writer.write(data)
        writer.close()


@contextlib.asynccontextmanager
async def second_way(caller: Caller) -> AsyncIterator[Forwarder]:
    """The broker registers at its name server twice, the second time over a way that can be blocked."""
    forwarder = Forwarder(caller.cluster.namesrv.port)
    server = await asyncio.start_server(forwarder.forward, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    registrations = caller.cluster.broker.outer_api
    registrations.follow([caller.cluster.namesrv_address, f"127.0.0.1:{port}"])
    await until(lambda: registrations.registered == (2, 2))
    try:
        yield forwarder
    finally:
        forwarder.is_open.set()
        registrations.follow([caller.cluster.namesrv_address])
        server.close()


@contextlib.asynccontextmanager
async def one_name_server_hangs(folder: Path, flush: str) -> AsyncIterator[tuple[Caller, Forwarder]]:
    """A broker with two name servers, and the way to the second one, which is closed."""
    async with calling(folder, broker=PATIENT, store={"flush_disk_type": flush}) as caller, second_way(caller) as way:
        way.is_open.clear()
        yield caller, way


@pytest.mark.usefixtures("patient_broker")
@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_of_messages_that_overlap_each_is_acknowledged_when_the_name_servers_know_the_topic(
    tmp_path: Path, flush: str
) -> None:
    async with one_name_server_hangs(tmp_path, flush) as (caller, way):
        sends = [asyncio.create_task(caller.send("T", b"%d" % number)) for number in range(4)]
        store = caller.cluster.broker.store
        await until(lambda: store.max_offset("T", 0) == 4)
        half = asyncio.create_task(caller.send("T", b"half", i=HALF))
        await until(lambda: knows(caller, "T"))  # one of the two does
        await asyncio.sleep(0.2)  # what does not wait would have been answered
        assert not any(task.done() for task in (*sends, half))
        way.is_open.set()
        assert [(await task).code for task in (*sends, half)] == [0] * 5
        assert "T" not in caller.cluster.broker.send_targets.plain
        assert (await caller.send("T", b"later")).code == 0
        assert "T" in caller.cluster.broker.send_targets.plain, "the next one takes the short way"


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_a_name_server_that_hangs_costs_a_new_topic_a_second_and_the_next_message_nothing(
    tmp_path: Path, flush: str
) -> None:
    async with one_name_server_hangs(tmp_path, flush) as (caller, _way):
        begin = time.monotonic()
        assert (await caller.send("T", b"x")).code == 0
        assert 0.9 < time.monotonic() - begin < 20
        assert knows(caller, "T")  # the one that answers was told
        waits = 0
        for _ in range(50):
            begin = time.monotonic()
            assert (await caller.send("T", b"x")).code == 0
            waits += time.monotonic() - begin > 0.9
        assert waits < 25


async def test_a_name_server_that_is_gone_costs_nothing(caller: Caller) -> None:
    registrations = caller.cluster.broker.outer_api
    registrations.follow([caller.cluster.namesrv_address, closed_port()])
    assert (await caller.send("T", b"x")).code == 0
    waits = 0
    for number in range(20):
        begin = time.monotonic()
        assert (await caller.send(f"T{number}", b"x")).code == 0
        has_waited = time.monotonic() - begin > 0.9 * WAIT_S
        assert has_waited or knows(caller, f"T{number}")
        waits += has_waited
    assert waits < 10
