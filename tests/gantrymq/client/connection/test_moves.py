"""A broker that hands over to its slave: its clients ask for the route at once, not too often, and try there first."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest

from gantrymq import Message, MessageQueue, PopConsumer, Producer, SyncProducer, TransactionProducer, TransactionState
from gantrymq.client.connection.moves import (
    FIRST_PAUSE_S,
    SEEK_S,
    SOON_PAUSE_S,
    SOON_S,
    Moves,
    may_have_moved,
    pause_after,
)
from gantrymq.client.connection.options import ClientOptions
from gantrymq.client.connection.routes import LOOK_AGAIN_S, REFRESH_S
from gantrymq.client.connection.session import ClientSession
from gantrymq.client.produce.retry import PAUSE_S, PAUSE_S_MAX, Retry
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult
from gantrymq.errors import ConnectError, GantryError, NoBrokerYet, RequestTimeout, ResponseError
from gantrymq.remoting.bodies import BrokerData, HeartbeatData, QueueData, TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from tests.gantrymq.client.seen import until
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server
from tests.waiting import WITHIN_S

ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC
HOST = "7F00000100002A9F"


class Group:
    """One broker name: who its master is, and what a member answers."""

    def __init__(self) -> None:
        self.master = ""
        self.slave = "127.0.0.1:1"  # shown while there is no master
        self.has_handed_over = False
        self.hangs_up = False
        self.is_silent = False
        self.lacks_slaves = False  # the new master, which stores nothing meanwhile
        self.leaves_unanswered: int | None = None  # a code
        self.has_pop_waiting = False  # at the old master
        self.was_heard: list[str] = []  # by the new master: names of requests
        self.asked = 0

    def name_server(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code != ROUTE or request.ext_fields["topic"] != "T":
            writer.write(request.reply(ResponseCode.TOPIC_NOT_EXIST).encode())
            return
        self.asked += 1
        addresses = {0: self.master} if self.master else {1: self.slave}
        route = TopicRouteData([BrokerData("c", "a", addresses)], [QueueData("a", 1, 1, 6)])
        writer.write(request.reply(body=route.to_json()).encode())

    def old(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        self.has_pop_waiting |= request.code == RequestCode.POP_MESSAGE
        if self.is_silent or request.code == self.leaves_unanswered:
            return
        if request.code == RequestCode.HEART_BEAT or not self.has_handed_over:
            self._take(writer, request)
            return
        if self.hangs_up:
            writer.close()
            return
        is_end = request.code == RequestCode.END_TRANSACTION
        code = ResponseCode.SLAVE_NOT_AVAILABLE if is_end else ResponseCode.SERVICE_NOT_AVAILABLE
        writer.write(request.reply(code, "this broker is a slave").encode())

    def new(self, server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        self.was_heard.append(RequestCode(request.code).name)
        if self.lacks_slaves and request.code == RequestCode.SEND_MESSAGE_V2:
            writer.write(request.reply(ResponseCode.SERVICE_NOT_AVAILABLE, "1 in sync").encode())
        else:
            self._take(writer, request)

    def _take(self, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        fields = {"msgId": HOST + "0" * 16, "queueId": "0", "queueOffset": "0"}
        writer.write(request.reply(ext_fields=fields).encode())


@contextlib.asynccontextmanager
async def members() -> AsyncIterator[tuple[Group, str, str, str]]:
    group = Group()
    async with (
        scripted_server(group.old) as old,
        scripted_server(group.new) as new,
        scripted_server(group.name_server) as names,
    ):
        group.master = old.address
        yield group, names.address, old.address, new.address


@contextlib.asynccontextmanager
async def reading(name_server: str) -> AsyncIterator[ClientSession]:
    """The session of a client that knows the route."""
    session = ClientSession(ClientOptions(name_servers=name_server), heartbeat=HeartbeatData)
    session.open()
    await session.routes.to_read("T")
    yield session
    await session.close()


@pytest.mark.parametrize("way", ["refuses", "hangs up"])
async def test_the_route_is_asked_for_at_once_and_the_new_master_tried_before_the_next_pause(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gantrymq.client.produce.retry.PAUSE_S", 3600.0)  # no pause of a sender ends by itself
    monkeypatch.setattr("gantrymq.client.produce.retry.PAUSE_S_MAX", 3600.0)
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.has_handed_over, group.hangs_up = True, way == "hangs up"
        asked = group.asked
        sending = asyncio.create_task(producer.send(Message("T", b"after"), timeout_s=7200))
        while group.asked < asked + 2:  # still the old one, once and again
            await asyncio.sleep(0.005)
        group.master = new
        assert (await sending).queue == MessageQueue("T", "a", 0)
        assert "SEND_MESSAGE_V2" in group.was_heard
        while "HEART_BEAT" not in group.was_heard:  # it has to know the client, too
            await asyncio.sleep(0.005)


async def test_who_waits_for_a_broker_without_master_is_woken_when_it_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name server leaves out a master that died, and the route shows slaves alone until one has taken over."""
    waited: list[GantryError] = []

    def pause_after(self: Retry, failure: GantryError, broker: str, brokers: set[str]) -> float:
        waited.append(failure)
        return 3600.0 if isinstance(failure, NoBrokerYet) else 0.001

    monkeypatch.setattr(Retry, "pause_after", pause_after)
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.has_handed_over, group.hangs_up, group.master = True, True, ""
        sending = asyncio.create_task(producer.send(Message("T", b"after"), timeout_s=7200))
        await until(lambda: any(isinstance(each, NoBrokerYet) for each in waited))
        assert not sending.done()
        group.master = new
        assert (await sending).queue == MessageQueue("T", "a", 0)


def test_pauses_are_short_again_once_the_broker_has_another_master() -> None:
    retry, refused = Retry(None), ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, "", address="a:1")
    pauses = [retry.pause_after(refused, "a", {"a"}) or 0.0 for _ in range(8)]
    assert pauses[-1] >= PAUSE_S_MAX / 2
    retry.moved()
    assert (retry.pause_after(refused, "a", {"a"}) or 0.0) <= PAUSE_S


async def test_so_they_are_when_the_sender_itself_found_that_out(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[GantryError, int]] = []
    growing = Retry.pause_after

    def pause_after(self: Retry, failure: GantryError, broker: str, brokers: set[str]) -> float:
        noted.append((failure, self.rounds))
        growing(self, failure, broker, brokers)
        return 0.001

    def rounds(kind: type[GantryError]) -> list[int]:
        return [each for failure, each in noted if isinstance(failure, kind)]

    monkeypatch.setattr(Retry, "pause_after", pause_after)
    monkeypatch.setattr(Moves, "suspect", lambda *_given, **_named: None)  # nobody else looks
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.hangs_up = group.has_handed_over = group.lacks_slaves = True
        group.master = ""
        sending = asyncio.create_task(producer.send(Message("T", b"after"), timeout_s=7200))
        await until(lambda: len(rounds(NoBrokerYet)) > 3)
        group.master = new
        await until(lambda: bool(rounds(ResponseError)))
        group.lacks_slaves = False
        await sending
    assert rounds(NoBrokerYet)[-1] > rounds(ResponseError)[0] == 0


async def test_a_send_to_a_master_that_stands_still_is_tried_at_its_successor_before_its_time_is_up() -> None:
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.is_silent = True
        asked = group.asked
        sending = asyncio.create_task(producer.send(Message("T", b"after"), timeout_s=7200))
        await until(lambda: group.asked > asked)
        group.master = new
        async with asyncio.timeout(WITHIN_S):
            assert (await sending).queue == MessageQueue("T", "a", 0)


async def test_so_is_the_send_of_a_thread() -> None:
    async with members() as (group, names, _old, new):
        sent: list[SendResult] = []

        def send() -> None:
            with SyncProducer(names) as producer:
                producer.send(Message("T", b"before"))
                producer.send(Message("T", b"by a connection of the thread"))
                group.is_silent = True
                sent.append(producer.send(Message("T", b"after"), timeout_s=7200))

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        await until(lambda: group.is_silent)
        asked = group.asked
        await until(lambda: group.asked > asked)
        group.master = new
        await until(lambda: bool(sent))
        await asyncio.to_thread(thread.join)


async def test_the_silence_of_an_old_master_is_none_of_its_successor() -> None:
    async with members() as (group, names, _old, new):
        session = ClientSession(ClientOptions(name_servers=names), heartbeat=HeartbeatData)
        session.open()
        sender = Sender(session, "g")
        await sender.queues("T", WITHIN_S)
        sender.silences.failed("a")
        sender.silences.failed("b")
        group.master = new
        await session.routes.look_again("T")
        assert list(sender.silences.known) == ["b"]
        await session.close()


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.POP_MESSAGE, RequestCode.NOTIFICATION])
async def test_a_long_poll_at_a_master_that_stands_still_ends_when_another_is_known(
    monkeypatch: pytest.MonkeyPatch, code: RequestCode
) -> None:
    monkeypatch.setattr("gantrymq.client.connection.silence.SILENT_S", 0.05)
    async with members() as (group, names, old, new), reading(names) as session:
        group.is_silent = True
        pulling = asyncio.create_task(session.calls.call(old, code, timeout_s=7200))
        await asyncio.sleep(0.3)  # some looks, which find no call that says anything: long polls may wait
        assert group.asked == 1
        group.master = new
        assert await session.routes.look_again("T")
        with pytest.raises(ConnectError, match="serves elsewhere"):
            await pulling


async def test_a_pull_that_waits_at_an_old_master_that_answers_others_ends_too_and_nothing_else_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only its slaves and etcd do not reach it."""
    monkeypatch.setattr("gantrymq.client.connection.silence.SILENT_S", 3600.0)
    async with members() as (group, names, old, new), reading(names) as session:
        group.leaves_unanswered = RequestCode.PULL_MESSAGE
        pulling = asyncio.create_task(session.calls.call(old, RequestCode.PULL_MESSAGE, timeout_s=7200))
        await session.calls.call(old, RequestCode.HEART_BEAT)
        group.leaves_unanswered = RequestCode.SEND_MESSAGE_V2
        sending = asyncio.create_task(session.calls.call(old, RequestCode.SEND_MESSAGE_V2, timeout_s=7200))
        await session.calls.call(old, RequestCode.HEART_BEAT)
        group.master = new
        assert await session.routes.look_again("T")
        with pytest.raises(ConnectError, match="serves elsewhere"):
            await pulling
        await session.calls.call(old, RequestCode.HEART_BEAT)
        assert not sending.done()
        sending.cancel()


async def test_a_pop_at_a_master_that_stands_still_is_asked_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gantrymq.client.connection.silence.SILENT_S", 0.05)
    monkeypatch.setattr("gantrymq.client.connection.session.HEARTBEAT_S", 0.05)
    monkeypatch.setattr("gantrymq.client.pop.polling.WAIT_S", 3600.0)
    async with members() as (group, names, _old, new), PopConsumer(names, group="g") as consumer:
        group.leaves_unanswered = RequestCode.POP_MESSAGE
        consumer.subscribe("T")
        polling = asyncio.create_task(consumer.poll(3600.0))
        await until(lambda: group.has_pop_waiting)
        group.is_silent, group.master = True, new
        await until(lambda: "POP_MESSAGE" in group.was_heard)
        polling.cancel()


async def test_a_herd_of_refused_sends_asks_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantrymq.client.connection.moves.random.uniform", lambda low, high: low)  # the most there are
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.has_handed_over = True
        asked, began = group.asked, asyncio.get_running_loop().time()
        herd = [asyncio.create_task(producer.send(Message("T", b"after"))) for _ in range(300)]
        await asyncio.sleep(1.0)  # the time in which questions are counted
        seconds = asyncio.get_running_loop().time() - began
        assert 2 <= group.asked - asked <= 3 + seconds / (SOON_PAUSE_S / 2) + 2, "its first pauses are shorter"
        group.master = new
        await asyncio.gather(*herd)


async def test_the_end_of_a_transaction_goes_to_the_new_master() -> None:
    class Listener:
        def execute(self, message: Message, argument: object) -> TransactionState:
            return TransactionState.COMMIT

        check = execute

    async with members() as (group, names, _old, new):
        async with TransactionProducer(names, listener=Listener(), group="g") as producer:
            prepared = await producer.prepare(Message("T", b"half"))
            group.has_handed_over, group.master = True, new
            ended = await producer.end(prepared, TransactionState.COMMIT)
        assert ended.is_confirmed
        assert "END_TRANSACTION" in group.was_heard


@pytest.mark.parametrize(
    ("failure", "may"),
    [
        (ResponseError(ResponseCode.SERVICE_NOT_AVAILABLE, ""), True),
        (ResponseError(ResponseCode.SLAVE_NOT_AVAILABLE, ""), True),
        (ResponseError(ResponseCode.SYSTEM_BUSY, ""), False),
        (ConnectError("h:1", "refused"), True),
        (RequestTimeout("h:1", 10, 3.0), True),
    ],
)
def test_what_a_broker_that_moved_looks_like(failure: GantryError, may: bool) -> None:
    assert may_have_moved(failure) is may


async def test_they_are_frequent_again_once_the_members_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slave that is about to be the master has left."""
    elapsed: list[float] = []

    def pause_after(questions: int, elapsed_s: float, quiet_s: float) -> float:
        elapsed.append(elapsed_s)
        return 0.01

    monkeypatch.setattr("gantrymq.client.connection.moves.pause_after", pause_after)
    async with members() as (group, names, _old, new), Producer(names) as producer:
        await producer.send(Message("T", b"before"))
        group.has_handed_over, group.hangs_up, group.master = True, True, ""
        sending = asyncio.create_task(producer.send(Message("T", b"after"), timeout_s=7200))
        await until(lambda: len(elapsed) > 9)
        same, group.slave = len(elapsed), "127.0.0.1:2"
        await until(lambda: len(elapsed) > same + 9)
        group.master = new
        await sending
    assert elapsed[1:same] == sorted(elapsed[1:same]), "the first answer shows that the master has left"
    assert min(elapsed[same:]) < elapsed[same - 1]


async def test_a_client_that_begins_while_a_broker_has_no_master_looks_until_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sends to the others meanwhile, so that nothing fails."""
    monkeypatch.setattr("gantrymq.client.connection.moves.SEEK_S", 0.05)
    moved: list[str] = []
    async with members() as (group, names, _old, new):
        group.master = ""
        session = ClientSession(ClientOptions(name_servers=names), heartbeat=HeartbeatData)
        session.when_moved.append(moved.append)
        session.open()
        await session.routes.to_read("T")
        asked = group.asked
        await until(lambda: group.asked > asked + 9)  # long after SEEK_S
        group.master = new
        await until(lambda: moved == ["a"])
        await session.close()


def test_questions_become_rarer() -> None:
    at, questions = 0.0, 1
    while at < SEEK_S:
        at += pause_after(questions, at) / 2  # with the shortest jitter
        questions += 1
    assert questions <= 3 + SOON_S / (SOON_PAUSE_S / 2) + SEEK_S / (LOOK_AGAIN_S / 2)
    assert pause_after(1, 0.0) == FIRST_PAUSE_S
    assert pause_after(1000, SOON_S) == LOOK_AGAIN_S
    assert LOOK_AGAIN_S < pause_after(1000, SEEK_S, SEEK_S) < SEEK_S / 4
    assert pause_after(1000, 3600.0, 3600.0) == REFRESH_S
