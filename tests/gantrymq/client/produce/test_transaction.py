"""Messages in transactions at running brokers, GantryMQ's and Apache's: committed, rolled back, and asked about."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from appliance.bench.peer import Peer
from gantrymq import (
    Message,
    MessageExt,
    PushConsumer,
    SendStatus,
    SyncTransactionProducer,
    TransactionProducer,
    TransactionState,
)
from gantrymq.errors import ConfigError, MessageRejected, ResponseError, WrongType
from gantrymq.remoting.bodies import BrokerData, QueueData, TopicRouteData
from gantrymq.remoting.codes import RequestCode
from gantrymq.remoting.command import ROCKETMQ, RemotingCommand
from tests.gantrymq.client.messages import stored
from tests.gantrymq.client.peers import running_peer, topic_at
from tests.gantrymq.client.ports import closed_port
from tests.gantrymq.remoting.scripted import ScriptedServer, scripted_server
from tests.waiting import WITHIN_S

COMMIT, ROLLBACK, UNKNOWN = TransactionState
# A message is asked about until a slow producer is there to answer, and not dropped meanwhile.
CHECKS = {"transactionCheckInterval": "500", "transactionTimeOut": "500", "transactionCheckMax": "1000"}
_numbers = itertools.count()


@pytest.fixture(scope="module", params=["gantry", "apache"])
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running_peer(request.param, tmp_path_factory.mktemp(request.param), **CHECKS) as running:
        yield running


@pytest.fixture
def name() -> str:
    """A name for a topic and a group that no other test used."""
    return f"tx_{next(_numbers)}"


class Books:
    """A listener: the argument of a message is what its local transaction comes to; `answers` are given when asked."""

    def __init__(self, answers: dict[bytes, TransactionState | Exception] | None = None) -> None:
        self.answers = answers or {}
        self.executed: list[bytes] = []
        self.asked: list[MessageExt] = []

    async def execute(self, message: Message, argument: Any, /) -> TransactionState:
        self.executed.append(message.body)
        if isinstance(argument, Exception):
            raise argument
        state: TransactionState = argument
        return state

    async def check(self, message: MessageExt, /) -> TransactionState:
        self.asked.append(message)
        answer = self.answers.get(message.body, UNKNOWN)
        if isinstance(answer, Exception):
            raise answer
        return answer


class PlainBooks(Books):
    """The same with plain methods; notes its threads."""

    def __init__(self, answers: dict[bytes, TransactionState | Exception] | None = None) -> None:
        super().__init__(answers)
        self.threads: set[str] = set()

    def execute(self, message: Message, argument: Any, /) -> TransactionState:  # type: ignore[override]
        self.threads.add(threading.current_thread().name)
        state: TransactionState = argument
        return state

    def check(self, message: MessageExt, /) -> TransactionState:  # type: ignore[override]
        self.asked.append(message)
        answer = self.answers[message.body]
        assert isinstance(answer, TransactionState)
        return answer


class Consumer:
    """Keeps what consumers of the topic get.

    Apache's broker asks again when an answer takes longer than until its next look, and stores the message for each
    answer: of that make a message counts once.
    """

    def __init__(self, peer: Peer, topic: str) -> None:
        self.messages: list[MessageExt] = []
        self._is_stored_again = peer.label == "apache"
        self._consumer = PushConsumer(peer.namesrv_address, group=f"{topic}-group", listener=self._got)
        self._consumer.subscribe(topic)

    async def _got(self, messages: list[MessageExt]) -> None:
        known = {message.msg_id for message in self.messages} if self._is_stored_again else set()
        self.messages += [message for message in messages if message.msg_id not in known]

    async def __aenter__(self) -> Consumer:
        await self._consumer.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._consumer.close()

    async def bodies(self, count: int) -> list[bytes]:
        """What came, sorted, once it is that many."""
        async with asyncio.timeout(WITHIN_S):
            while len(self.messages) < count:
                await asyncio.sleep(0.02)
        return sorted(message.body for message in self.messages)


@pytest.mark.parametrize("serialize_type", [0, ROCKETMQ], ids=["json", "rocketmq"])
async def test_consumers_see_what_was_committed_and_nothing_else(peer: Peer, name: str, serialize_type: int) -> None:
    books = Books({b"failed": ROLLBACK, b"later": COMMIT, b"never": ROLLBACK})
    async with topic_at(peer, name), Consumer(peer, name) as consumer:
        async with TransactionProducer(
            peer.namesrv_address, listener=books, group=f"{name}-p", serialize_type=serialize_type
        ) as producer:
            committed = await producer.send_in_transaction(Message(name, b"committed", tags="a", keys="k"), COMMIT)
            assert (committed.state, committed.is_confirmed, committed.error) == (COMMIT, True, None)
            rolled_back = await producer.send_in_transaction(Message(name, b"rolled back"), ROLLBACK)
            assert (rolled_back.state, rolled_back.is_confirmed) == (ROLLBACK, True)
            failure = ValueError("no money")
            failed = await producer.send_in_transaction(Message(name, b"failed"), failure)
            assert (failed.state, failed.is_confirmed, failed.error) == (UNKNOWN, False, failure)
            for body in (b"later", b"never"):
                await producer.send_in_transaction(Message(name, body), UNKNOWN)
            assert await consumer.bodies(2) == [b"committed", b"later"]
            assert books.executed == [b"committed", b"rolled back", b"failed", b"later", b"never"]
            async with asyncio.timeout(WITHIN_S):
                while {message.body for message in books.asked} < {b"failed", b"later", b"never"}:
                    await asyncio.sleep(0.02)
            assert {message.topic for message in books.asked} == {name}
        (message,) = (each for each in consumer.messages if each.body == b"committed")
        assert (message.tags, message.keys, message.msg_id) == ("a", ["k"], committed.send.msg_id)


async def test_another_producer_of_the_group_answers_for_one_that_is_gone(peer: Peer, name: str) -> None:
    async with topic_at(peer, name), Consumer(peer, name) as consumer:
        async with TransactionProducer(peer.namesrv_address, listener=Books(), group=f"{name}-p") as producer:
            await producer.prepare(Message(name, b"x" * 10_000))
        books = Books({b"x" * 10_000: COMMIT})
        async with TransactionProducer(
            peer.namesrv_address, listener=books, group=f"{name}-p", topics=[name]
        ) as producer:
            (message,) = [await consumer.bodies(1)]
            assert message == [b"x" * 10_000]
        assert books.executed == []


async def test_a_listener_that_fails_or_forgets_to_answer_leaves_the_transaction_open(peer: Peer, name: str) -> None:
    books = Books({b"pay": OSError("database is away")})
    async with (
        topic_at(peer, name),
        Consumer(peer, name) as consumer,
        TransactionProducer(peer.namesrv_address, listener=books, group=f"{name}-p") as producer,
    ):
        result = await producer.send_in_transaction(Message(name, b"pay"), None)
        assert result.state is UNKNOWN and isinstance(result.error, TypeError)
        async with asyncio.timeout(WITHIN_S):
            while not books.asked:
                await asyncio.sleep(0.02)
        books.answers = {b"pay": COMMIT}
        assert await consumer.bodies(1) == [b"pay"]


async def outcome_of(listener: PlainBooks) -> tuple[TransactionState, Exception | None]:
    async with TransactionProducer("127.0.0.1:1", listener=listener, group="g") as producer:
        return await producer._outcome(listener.check, stored(0))


async def test_a_listener_that_exits_in_its_thread_does_not_end_the_loop() -> None:
    class Exits(PlainBooks):
        def check(self, message: MessageExt, /) -> TransactionState:  # type: ignore[override]
            sys.exit(3)

    state, error = await outcome_of(Exits())
    assert state is UNKNOWN and "SystemExit(3)" in str(error)


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt(3)])
async def test_an_async_listener_that_exits_does_not_end_a_loop_beside_the_main_thread(end: BaseException) -> None:
    class Exits(PlainBooks):
        async def check(self, message: MessageExt, /) -> TransactionState:  # type: ignore[override]
            raise end

    state, error = await asyncio.to_thread(asyncio.run, outcome_of(Exits()))
    assert state is UNKNOWN and f"{type(end).__name__}(3)" in str(error)


async def test_a_message_in_a_transaction_can_not_be_delayed(peer: Peer, name: str) -> None:
    async with TransactionProducer(peer.namesrv_address, listener=Books(), group=f"{name}-p") as producer:
        with pytest.raises(MessageRejected, match="delayed"):
            await producer.send_in_transaction(Message(name, b"pay", delay_level=1), COMMIT)


async def test_a_block_is_a_transaction(peer: Peer, name: str) -> None:
    answers: dict[bytes, TransactionState | Exception] = dict.fromkeys((b"stopped", b"stopped later"), COMMIT)
    books = PlainBooks(answers)

    def send() -> None:
        with SyncTransactionProducer(peer.namesrv_address, listener=books, group=f"{name}-p") as producer:
            with producer.transaction(Message(name, b"from a thread")):
                pass
            with pytest.raises(ValueError, match="no money"), producer.transaction(Message(name, b"failed there")):
                raise ValueError("no money")

    async with topic_at(peer, name), Consumer(peer, name) as consumer:
        async with TransactionProducer(peer.namesrv_address, listener=books, group=f"{name}-p") as producer:
            async with producer.transaction(Message(name, b"done")) as prepared:
                assert (prepared.status, prepared.queue.topic) == (SendStatus.SEND_OK, name)
            with pytest.raises(ValueError, match="no money"):
                async with producer.transaction(Message(name, b"failed")):
                    raise ValueError("no money")
            with pytest.raises(asyncio.CancelledError):
                async with producer.transaction(Message(name, b"stopped")):
                    raise asyncio.CancelledError
            await asyncio.to_thread(send)
            assert await consumer.bodies(3) == [b"done", b"from a thread", b"stopped"]
            asked_before = len(books.asked)  # a slow broker asks about what is being ended, too
            with pytest.raises(asyncio.CancelledError):
                async with producer.transaction(Message(name, b"stopped later")):
                    raise asyncio.CancelledError
            assert b"stopped later" in await consumer.bodies(4)
        assert {message.body for message in books.asked[asked_before:]} == {b"stopped later"}, "the others have ended"


async def test_no_transaction_is_begun_on_what_is_not_stored_as_asked() -> None:
    def broker(server: ScriptedServer, writer: asyncio.StreamWriter, request: RemotingCommand) -> None:
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            route = TopicRouteData([BrokerData("c", "b", {0: server.address})], [QueueData("b", 1, 1, 6)])
            writer.write(request.reply(body=route.to_json()).encode())
        elif request.code == RequestCode.SEND_MESSAGE_V2:
            fields = {"msgId": "7F00000100002A9F0000000000000000", "queueId": "0", "queueOffset": "0"}
            writer.write(request.reply(SendStatus.FLUSH_DISK_TIMEOUT.value, ext_fields=fields).encode())
        else:
            ends.append(request.ext_fields.get("commitOrRollback"))
            writer.write(request.reply().encode())

    ends: list[str | None] = []
    async with (
        scripted_server(broker) as server,
        TransactionProducer(server.address, listener=Books(), group="g") as producer,
    ):
        with pytest.raises(ResponseError, match="FLUSH_DISK_TIMEOUT"):
            async with producer.transaction(Message("T", b"x")):
                pytest.fail("the block must not run")
    assert str(ROLLBACK.value) in ends


async def test_the_blocking_producer_executes_in_the_callers_thread(peer: Peer, name: str) -> None:
    books = PlainBooks({b"later": COMMIT, b"now": COMMIT, b"never": ROLLBACK})  # a slow broker asks about those too

    def send() -> None:
        with SyncTransactionProducer(peer.namesrv_address, listener=books, group=f"{name}-p") as producer:
            for body, state in ((b"now", COMMIT), (b"never", ROLLBACK), (b"later", UNKNOWN)):
                result = producer.send_in_transaction(Message(name, body), state)
                assert result.state is state
            deadline = time.monotonic() + WITHIN_S
            while not any(message.body == b"later" for message in books.asked):
                assert time.monotonic() < deadline
                time.sleep(0.02)

    async with topic_at(peer, name), Consumer(peer, name) as consumer:
        thread = threading.Thread(target=send, name="caller")
        thread.start()
        await asyncio.to_thread(thread.join)
        assert await consumer.bodies(2) == [b"later", b"now"]
    assert books.threads == {"caller"}


def test_the_blocking_producer_wants_plain_methods() -> None:
    with pytest.raises(ConfigError, match="plain"):
        SyncTransactionProducer("127.0.0.1:9876", listener=Books(), group="g")


class OnlyChecks:
    def check(self, message: object, /) -> TransactionState:
        return TransactionState.ROLLBACK


async def test_a_listener_of_blocks_needs_no_execute(peer: Peer, name: str) -> None:
    async with TransactionProducer(peer.namesrv_address, listener=OnlyChecks(), group=name) as producer:
        async with producer.transaction(Message(name, b"block")) as prepared:
            assert prepared.status is SendStatus.SEND_OK
        with pytest.raises(ConfigError, match="has no method execute"):
            await producer.send_in_transaction(Message(name, b"not sent"))


def test_a_blocking_listener_of_blocks_needs_no_execute(peer: Peer, name: str) -> None:
    with SyncTransactionProducer(peer.namesrv_address, listener=OnlyChecks(), group=name) as producer:
        with producer.transaction(Message(name, b"block")) as prepared:
            assert prepared.status is SendStatus.SEND_OK
        with pytest.raises(ConfigError, match="has no method execute"):
            producer.send_in_transaction(Message(name, b"not sent"))


def test_a_listener_without_check_is_refused() -> None:
    with pytest.raises(WrongType, match="no method check"):
        TransactionProducer(closed_port(), listener=object(), group="g")  # type: ignore[arg-type]
