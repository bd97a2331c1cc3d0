"""SyncTransactionProducer: TransactionProducer for threads. `execute` runs in the thread that sends."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Generator, Sequence
from typing import Any, Final, Unpack

from gantrymq.client.blocking.base import BlockingClient, waited_for
from gantrymq.client.blocking.producer import SyncProducer
from gantrymq.client.connection.option_checks import check_listener
from gantrymq.client.produce.options import ProducerKeywords
from gantrymq.client.produce.transaction import (
    TransactionChecker,
    TransactionListener,
    TransactionProducer,
    TransactionResult,
    TransactionState,
    checked_state,
    execute_of,
    not_prepared,
)
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import ConfigError
from gantrymq.message.model import Message, MessageQueue

logger: logging.Logger = logging.getLogger(__name__)


class SyncTransactionProducer(SyncProducer):
    """Takes TransactionProducer's arguments, with a listener of plain methods. `check` runs in the producer's own
    threads, `execute` in the caller's: a database session bound to that thread can be used."""

    _client: TransactionProducer

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
        if inspect.iscoroutinefunction(getattr(listener, "execute", None)):
            raise ConfigError("SyncTransactionProducer calls plain methods: for an async one use TransactionProducer")
        BlockingClient.__init__(  # SyncProducer's own would make a plain Producer
            self,
            lambda: TransactionProducer(
                name_servers, listener=listener, group=group, topics=topics, threads=threads, **keywords
            ),
        )
        self._listener = listener

    def send_in_transaction(
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
        prepared = self._run(self._client.prepare(message, queue=queue, timeout_s=timeout_s))
        state, error = TransactionState.ROLLBACK, None
        if prepared.status is SendStatus.SEND_OK:
            try:
                state = checked_state(execute(message, argument))
            except Exception as exc:  # the application's: whatever it is, the outcome is not known
                logger.exception("transaction listener failed", extra={"event": "transaction_listener_failed"})
                state, error = TransactionState.UNKNOWN, exc
        return self._run(self._client.end(prepared, state, error=error))

    @contextlib.contextmanager
    def transaction(
        self, message: Message, *, queue: MessageQueue | None = None, timeout_s: float | None = None
    ) -> Generator[SendResult]:
        """Prepare the message and commit it when the block ends: `with producer.transaction(message): ...`.

        An exception in the block rolls it back. What ends the block from outside (a cancellation, an exit) leaves open
        how far the local transaction came: the broker asks `check` later. ResponseError when the message could be
        stored, but not as safely as the broker was asked to: the block does not run.
        """
        prepared = self.prepare(message, queue=queue, timeout_s=timeout_s)
        if prepared.status is not SendStatus.SEND_OK:
            self.end(prepared, TransactionState.ROLLBACK)
            raise not_prepared(prepared)
        try:
            yield prepared
        except Exception as exc:
            self.end(prepared, TransactionState.ROLLBACK, error=exc)
            raise
        except BaseException:
            self.end(prepared, TransactionState.UNKNOWN)
            raise
        self.end(prepared, TransactionState.COMMIT)

    prepare: Final = waited_for(TransactionProducer.prepare)
    end: Final = waited_for(TransactionProducer.end)
