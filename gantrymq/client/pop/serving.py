"""Gives the messages of a POP consumer to a listener, and acts on its answer.

Messages are polled only when a call can begin, so none waits here while another member could have it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from gantrymq.client.connection.background import Background
from gantrymq.client.consume.listener_calls import Listener, ListenerCalls, ThreadsEnded
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.interceptors import ConsumeCall, ConsumeProceed, around_consume
from gantrymq.client.pop.options import PopConsumerOptions
from gantrymq.client.results import ConsumeResult, DeadLetter, RetryLater
from gantrymq.errors import ClientClosed, GantryError
from gantrymq.message.delay_levels import DELAYS_S
from gantrymq.message.model import MessageExt
from gantrymq.remoting.outages import Outages
from gantrymq.timeouts import wait_for_event

logger: logging.Logger = logging.getLogger(__name__)

CONCURRENCY = 20
AFTER_FAILURE_S = 1.0
FIRST_DELAY = 2  # of DELAYS_S: 10 s, as brokers begin for a PushConsumer


class Consumer(Protocol):
    """What is used of the consumer."""

    @property
    def client_id(self) -> str: ...

    async def poll(self) -> list[MessageExt]: ...

    async def ack(self, *messages: MessageExt) -> None: ...

    async def change_invisible_time(self, message: MessageExt, invisible_s: float) -> None: ...

    async def bury(self, message: MessageExt) -> None: ...


class Serving:
    """One run of it."""

    def __init__(
        self, consumer: Consumer, options: PopConsumerOptions, listener: Listener, concurrency: int, outages: Outages
    ) -> None:
        self._consumer = consumer
        self._options = options
        around = self._around if options.interceptors else None
        self._calls = ListenerCalls(listener, ConsumeCounters(), concurrency=concurrency, around=around)
        self._again_s = options.suspend_s if options.ordered else None
        self._slots = asyncio.Semaphore(concurrency)
        self._outages = outages
        self._background = Background()
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._idle = asyncio.Event()
        self._busy = 0

    def stop(self) -> None:
        """Begin nothing more. From any thread, and from a signal's handler."""
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def run(self) -> bool:
        """Until `stop`; whether all calls have ended in time."""
        self._calls.start()
        polling = self._background.start(self._keep_polling(), "poll for the listener")
        stopped = self._background.start(self._stopped.wait(), "wait for the end")
        try:
            await asyncio.wait({polling, stopped}, return_when=asyncio.FIRST_COMPLETED)
            polling.cancel()
            if self._busy:
                await wait_for_event(self._idle, self._options.close_wait_s)
            if polling.done() and not polling.cancelled():
                await polling  # what it raised
            return not self._busy
        finally:
            await self._background.close()
            self._calls.close()

    async def _keep_polling(self) -> None:
        has_worked = False
        while True:
            await self._slots.acquire()
            messages: list[MessageExt] = []
            try:
                messages = await self._consumer.poll()
                has_worked = True
            except ClientClosed:
                return
            except GantryError as exc:
                if not has_worked:  # a mistake should show now
                    raise
                self._outages.failed("poll", "", exc)
                await asyncio.sleep(AFTER_FAILURE_S)
            if messages:
                self._busy += 1
                self._idle.clear()
                self._background.start(self._consume(messages), "call the listener")
            else:
                self._slots.release()

    async def _consume(self, messages: list[MessageExt]) -> None:
        try:
            await self._settle(messages, await self._calls.consume(messages[0].topic, messages))
        except ThreadsEnded:  # at exit: they are delivered again
            self._stopped.set()
        except GantryError as exc:
            logger.warning(
                "not settled, delivered again (msg_id=%s): %s",
                messages[0].msg_id,
                exc,
                extra={"event": "messages_not_settled", "msg_id": messages[0].msg_id, "error": str(exc)},
            )
        finally:
            self._slots.release()
            self._busy -= 1
            if not self._busy:
                self._idle.set()

    async def _settle(self, messages: list[MessageExt], result: ConsumeResult | RetryLater) -> None:
        again, delay_s = [], self._again_s
        if isinstance(result, RetryLater):
            again, delay_s = result.again(messages), self._again_s if result.delay_s is None else result.delay_s
        elif result is not ConsumeResult.SUCCESS:
            again = messages
        done = [message for message in messages if not any(message is each for each in again)]
        if done:
            await self._consumer.ack(*done)
        for message in again:
            if isinstance(result, DeadLetter):
                await self._consumer.bury(message)
            else:
                await self._consumer.change_invisible_time(message, delay_of(message, delay_s))

    async def _around(self, messages: list[MessageExt], proceed: ConsumeProceed) -> ConsumeResult | RetryLater:
        call = ConsumeCall(list(messages), self._options.group, self._consumer.client_id)
        return await around_consume(self._options.interceptors, call, proceed)


def delay_of(message: MessageExt, delay_s: float | None) -> float:
    """Seconds until a failed message is delivered again. None: longer with each time, as brokers do it."""
    return DELAYS_S[min(FIRST_DELAY + message.reconsume_times, len(DELAYS_S) - 1)] if delay_s is None else delay_s
