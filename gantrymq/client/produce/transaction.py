"""TransactionProducer: messages that consumers see if, and only if, the application's own transaction succeeds.

    class Orders:                                           # the listener
        async def execute(self, message, order):            # the local transaction
            await database.insert(order)
            return TransactionState.COMMIT

        async def check(self, message):                     # later, when the outcome got lost
            return TransactionState.COMMIT if await database.has(message.keys[0]) else TransactionState.ROLLBACK

    async with TransactionProducer(servers, listener=Orders(), group="orders") as producer:
        await producer.send_in_transaction(Message("orders", b"..."), order)

The message is stored first where no consumer looks. Then `execute` runs, and the broker gets what it returns. If
that never arrives (UNKNOWN, an exception, a crash), the broker asks a producer of the same group, any of them: `check`.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol, Unpack

from gantrymq.client.connection.moves import may_have_moved
from gantrymq.client.connection.option_checks import check_listener
from gantrymq.client.connection.received_messages import read_messages
from gantrymq.client.connection.send_codec import pack_aside
from gantrymq.client.exits import awaited, without_exit
from gantrymq.client.produce.options import ProducerKeywords
from gantrymq.client.produce.producer import Producer
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import ConfigError, GantryError, MessageRejected, RecordError, ResponseError
from gantrymq.message import properties as names
from gantrymq.message import sysflag
from gantrymq.message.ids import decode_offset_message_id
from gantrymq.message.model import Message, MessageExt, MessageQueue
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.failures import refused

logger: logging.Logger = logging.getLogger(__name__)

CHECK_ANSWER_TIMEOUT_S = 3.0
REMARK_CHARS_MAX = 200  # of an exception's text, told to the broker for its log


class TransactionState(Enum):
    """How a transaction ended. UNKNOWN leaves it open: the broker asks later."""

    COMMIT = sysflag.TRANSACTION_COMMIT
    ROLLBACK = sysflag.TRANSACTION_ROLLBACK
    UNKNOWN = sysflag.TRANSACTION_NONE


class TransactionChecker(Protocol):
    """The application's part where the local transaction stands in a block: `async with producer.transaction(…)`. A
    plain method runs in a thread, an async one on the loop; an exception means UNKNOWN."""

    def check(self, message: MessageExt, /) -> TransactionState | Awaitable[TransactionState]:
        """Say how the local transaction of a message went, which may be another process's and long ago."""


class TransactionListener(TransactionChecker, Protocol):
    """The application's part for `send_in_transaction`."""

    def execute(self, message: Message, argument: Any, /) -> TransactionState | Awaitable[TransactionState]:
        """Do the local transaction for a message that is prepared, and say how it went."""


@dataclass(slots=True)
class TransactionResult:
    """How a message in a transaction fared. is_confirmed: the broker has said that it stored commit or rollback; if
    not, it will ask. error: what the local transaction raised."""

    send: SendResult
    state: TransactionState
    is_confirmed: bool
    error: Exception | None = None


class TransactionProducer(Producer):
    """A Producer (see there for the other arguments) that also sends in transactions.

    group: names the application. The broker asks any producer of the group, so all of them need an equal listener.
    topics: `start` registers at their brokers, so that these can ask about transactions of the process before this one;
    at the brokers of other topics the first message does that. threads: for plain listener methods.

    After `close` open transactions stay open: the brokers ask another producer of the group.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        listener: TransactionListener | TransactionChecker,
        group: str,
        topics: Sequence[str] = (),
        threads: int = 8,
        **keywords: Unpack[ProducerKeywords],
    ) -> None:
        check_listener(listener, "check")
        super().__init__(name_servers, group=group, **keywords)
        self._listener = listener
        self._topics = tuple(topics)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="gantrymq-transaction")
        self._session.answer_requests({RequestCode.CHECK_TRANSACTION_STATE: self._asked})

    async def _open(self) -> None:
        await super()._open()
        try:
            for topic in self._topics:
                await self.queues(topic)
            if self._topics:
                await self._session.greet_new_brokers()
        except BaseException:
            await self.close()
            raise

    async def _shut_down(self) -> None:
        await super()._shut_down()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- sending ------------------------------------------------------------------------------------------------------

    async def send_in_transaction(
        self,
        message: Message,
        argument: Any = None,
        *,
        queue: MessageQueue | None = None,
        timeout_s: float | None = None,
    ) -> TransactionResult:
        """Prepare the message, run the listener's `execute` with it and the argument, tell the broker the outcome.

        Raises only when the message could not be prepared: then `execute` did not run. ConfigError when the listener
        has no `execute`.
        """
        execute = execute_of(self._listener)
        prepared = await self.prepare(message, queue=queue, timeout_s=timeout_s)
        if prepared.status is not SendStatus.SEND_OK:  # stored, but not as safely as asked: begin no transaction on it
            return await self.end(prepared, TransactionState.ROLLBACK)
        state, error = await self._outcome(execute, message, argument)
        return await self.end(prepared, state, error=error)

    @contextlib.asynccontextmanager
    async def transaction(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> AsyncGenerator[SendResult]:
        """Prepare the message and commit it when the block ends: `async with producer.transaction(message): ...`.

        An exception in the block rolls it back. What ends the block from outside (a cancellation, an exit) leaves open
        how far the local transaction came: the broker asks `check` later. ResponseError when the message could be
        stored, but not as safely as the broker was asked to: the block does not run.
        """
        prepared = await self.prepare(message, queue=queue, timeout_s=timeout_s)
        if prepared.status is not SendStatus.SEND_OK:
            await self.end(prepared, TransactionState.ROLLBACK)
            raise not_prepared(prepared)
        try:
            yield prepared
        except Exception as exc:
            await self.end(prepared, TransactionState.ROLLBACK, error=exc)
            raise
        except BaseException:
            await self.end(prepared, TransactionState.UNKNOWN)
            raise
        await self.end(prepared, TransactionState.COMMIT)

    async def prepare(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> SendResult:
        """Store the message where no consumer looks, until `end` is called with the result, here or after a check."""
        if message.delay_level > 0 or names.DELAY in message.properties:
            raise MessageRejected("a message in a transaction can't be delayed")
        marks = {names.TRAN_MSG: "true", names.PGROUP: self._session.namespace.wrap(self.group)}
        message = replace(message, properties={**message.properties, **marks})
        prepared = await self._around([message], lambda: self._prepare(message, queue, timeout_s))
        self._session.meet_brokers()
        return prepared

    async def _prepare(self, message: Message, queue: MessageQueue | None, timeout_s: float | None) -> SendResult:
        outgoing = await pack_aside(message, self._options.compression, self._options.message_bytes_max)
        outgoing.sys_flag |= sysflag.TRANSACTION_PREPARED
        return await self._send([message], outgoing, queue, timeout_s)

    async def end(
        self,
        prepared: SendResult,
        state: TransactionState,
        *,
        error: Exception | None = None,
        timeout_s: float | None = None,
    ) -> TransactionResult:
        """Tell the broker how the transaction went, and wait until it has stored that; UNKNOWN is sent without waiting.

        When the broker can't be told, that is no error: it will ask.
        """
        _, _, physical_offset = decode_offset_message_id(prepared.offset_msg_id)
        fields = self._end_fields(state, prepared.queue_offset, physical_offset, prepared.msg_id)
        try:
            is_confirmed = await self._tell_master(prepared.queue, fields, error, self._time(timeout_s), state)
        except GantryError as exc:
            logger.warning(
                "transaction's end not confirmed (msg_id=%s, state=%s): %s",
                prepared.msg_id,
                state.name,
                exc,
                extra={
                    "event": "transaction_end_not_confirmed",
                    "msg_id": prepared.msg_id,
                    "state": state.name,
                    "error": str(exc),
                },
            )
            is_confirmed = False
        return TransactionResult(prepared, state, is_confirmed, error)

    def _end_fields(
        self, state: TransactionState, queue_offset: int, physical_offset: int, msg_id: str
    ) -> dict[str, str]:
        return {
            "producerGroup": self._session.namespace.wrap(self.group),
            "tranStateTableOffset": str(queue_offset),
            "commitLogOffset": str(physical_offset),
            "commitOrRollback": str(state.value),
            "fromTransactionCheck": "false",
            "msgId": msg_id,
        }

    async def _tell_master(
        self,
        queue: MessageQueue,
        fields: dict[str, str],
        error: Exception | None,
        timeout_s: float,
        state: TransactionState,
    ) -> bool:
        """Tell the queue's master; when it is known to be another one in time, that one, too. It has the message, and
        knows if the other one has ended its transaction."""
        loop, moves = asyncio.get_running_loop(), self._session.moves
        deadline = loop.time() + timeout_s
        while True:
            try:
                left_s = max(deadline - loop.time(), 0.0)
                return await self._tell(self._sender.address_of(queue), fields, error, left_s, state)
            except GantryError as exc:
                moves.report(queue.broker_name, queue.topic, exc)
                left_s = max(deadline - loop.time(), 0.0)
                if not may_have_moved(exc) or not await moves.wait(queue.broker_name, exc, left_s):
                    raise

    async def _tell(
        self,
        address: str,
        fields: dict[str, str],
        error: Exception | None,
        timeout_s: float,
        state: TransactionState,
    ) -> bool:
        request = RemotingCommand.request(RequestCode.END_TRANSACTION, fields)
        if error is not None:
            request.remark = f"local transaction failed: {error!r}"[:REMARK_CHARS_MAX]
        if state is TransactionState.UNKNOWN:  # brokers don't answer it
            await self._session.remoting.invoke_oneway(address, request, timeout_s=timeout_s)
            return False
        answer = await self._session.remoting.invoke(address, request, timeout_s=timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise refused(answer, address, request.code)
        return True

    # -- being asked --------------------------------------------------------------------------------------------------

    async def _asked(self, address: str, request: RemotingCommand) -> None:
        """39 CHECK_TRANSACTION_STATE: the broker wants to know how one of the group's transactions went."""
        fields = request.ext_fields
        try:
            (message,) = await read_messages(request.body)
            self._session.namespace.unwrap_topics([message])
            queue_offset, physical_offset = int(fields["tranStateTableOffset"]), int(fields["commitLogOffset"])
        except (RecordError, KeyError, ValueError) as exc:
            logger.warning(
                "question about a transaction not understood (address=%s): %s",
                address,
                exc,
                extra={"event": "transaction_check_malformed", "address": address, "error": str(exc)},
            )
            return
        if message.properties.get(names.PGROUP) != self._session.namespace.wrap(self.group):
            logger.warning(
                "asked about another group's transaction (msg_id=%s)",
                message.msg_id,
                extra={"event": "transaction_check_of_other_group", "msg_id": message.msg_id},
            )
            return
        state, error = await self._outcome(self._listener.check, message)
        answer = self._end_fields(state, queue_offset, physical_offset, message.msg_id)
        answer |= {"fromTransactionCheck": "true", "transactionId": fields.get("transactionId", message.msg_id)}
        command = RemotingCommand.request(RequestCode.END_TRANSACTION, answer)
        if error is not None:
            command.remark = f"check failed: {error!r}"[:REMARK_CHARS_MAX]
        await self._session.remoting.invoke_oneway(address, command, timeout_s=CHECK_ANSWER_TIMEOUT_S)

    # -- the listener -------------------------------------------------------------------------------------------------

    async def _outcome(self, method: Callable[..., Any], *arguments: Any) -> tuple[TransactionState, Exception | None]:
        """What the listener returns; UNKNOWN and the exception when it raises or returns something else."""
        try:
            if inspect.iscoroutinefunction(method):
                state = await awaited(method(*arguments))
            else:
                loop = asyncio.get_running_loop()
                state = await loop.run_in_executor(self._threads, without_exit, method, *arguments)
                if inspect.isawaitable(state):
                    state = await awaited(state)
            return checked_state(state), None
        except Exception as exc:  # the application's: whatever it is, the outcome is not known
            logger.exception("transaction listener failed", extra={"event": "transaction_listener_failed"})
            return TransactionState.UNKNOWN, exc


def checked_state(state: object) -> TransactionState:
    """Return what a listener returned. TypeError unless it is a state: a forgotten return must not commit."""
    if not isinstance(state, TransactionState):
        raise TypeError(f"a transaction listener returns a TransactionState, not {state!r}")
    return state


def execute_of(listener: TransactionListener | TransactionChecker) -> Callable[[Message, Any], Any]:
    """The listener's `execute`. ConfigError when it has none: nothing is sent then."""
    execute: Callable[[Message, Any], Any] | None = getattr(listener, "execute", None)
    if not callable(execute):
        raise ConfigError("the listener has no method execute: add it, or use `with producer.transaction(message):`")
    return execute


def not_prepared(prepared: SendResult) -> ResponseError:
    """The error of a message that no transaction may be begun on."""
    remark = "stored, but not flushed or replicated as asked; it was rolled back"
    return ResponseError(prepared.status.value, remark, role="broker", name=prepared.status.name)
