"""Calling the application's listener: in a thread or on the loop, counted, traced, and visible while it lasts.

An async listener runs on the event loop, a plain function in a thread pool. What becomes of the messages after the call
is up to the concurrent and the ordered service.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import itertools
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gantrymq.client.connection.loop_watch import LoopWatch
from gantrymq.client.consume.failed_messages import note_cause
from gantrymq.client.consume.running_info import ConsumeCounters
from gantrymq.client.exits import awaited, without_exit
from gantrymq.client.interceptors import ConsumeProceed
from gantrymq.client.produce.trace import ConsumeTracer
from gantrymq.client.results import ConsumeResult, DeadLetter, RetryLater
from gantrymq.errors import WrongType
from gantrymq.message.model import MessageExt

logger: logging.Logger = logging.getLogger(__name__)

ListenerResult = ConsumeResult | RetryLater
Outcome = ListenerResult | Awaitable[ListenerResult | None] | None
Listener = Callable[[list[MessageExt]], Outcome]
Around = Callable[[list[MessageExt], ConsumeProceed], Awaitable[ListenerResult]]


class WrongResult(WrongType):
    """What a listener returned is no result."""


class ThreadsEnded(Exception):
    """There is no thread for a listener any more, because the interpreter ends: the listener was not called."""


@dataclass(slots=True, eq=False)
class RunningCall:
    """A listener call in progress. `started`: time.monotonic(); of the two owners of a stack one is None.

    timed_out: what a listener in a thread raised, where asyncio would hand on another error without its traceback.
    """

    messages: list[MessageExt]
    started: float
    task: asyncio.Task[object] | None = None
    thread_id: int | None = None
    timed_out: TimeoutError | None = None


class ListenerCalls:
    """Calls one listener, `concurrency` at once at most when it is a plain function."""

    def __init__(
        self,
        listener: Listener,
        counters: ConsumeCounters,
        *,
        concurrency: int,
        tracer: ConsumeTracer | None = None,
        around: Around | None = None,
    ) -> None:
        self.running: dict[int, RunningCall] = {}
        self._listener = listener
        self._counters = counters
        self._concurrency = concurrency
        self._tracer = tracer
        self._around = around
        self._is_async = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004 - an object whose __call__ is async counts too
        )
        self._threads: ThreadPoolExecutor | None = None
        self._watch = LoopWatch(self._started_at, "listener")
        self._numbers = itertools.count()
        self._has_told_wrong_result = False

    def start(self) -> None:
        if self._is_async:
            self._watch.start()
        else:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="gantrymq-listener")

    def close(self) -> None:
        """Begin no call that waits for a thread."""
        self._watch.stop()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _started_at(self, task: asyncio.Task[object]) -> float | None:
        """When the task began the call it is in; asked by the thread that watches the loop."""
        return next((call.started for call in list(self.running.values()) if call.task is task), None)

    async def call(self, messages: list[MessageExt]) -> ListenerResult:
        """Give messages to the listener. What it raises is raised; WrongType when it returns what is no result;
        ThreadsEnded when it can't be called any more."""
        return checked_result(await self._called(messages))

    async def _called(self, messages: list[MessageExt]) -> object:
        number = next(self._numbers)
        call = self.running[number] = RunningCall(messages, time.monotonic(), asyncio.current_task())
        try:
            outcome: object
            if self._threads is not None:
                outcome = await self._start_in_thread(self._threads, call)
            else:
                outcome = self._listener(list(messages))  # its own: it may take them out
            if inspect.isawaitable(outcome):
                outcome = await awaited(outcome)
        except RetryLater as exc:  # the same, said in the other way
            return exc
        except TimeoutError:
            if call.timed_out is None:
                raise
            raise call.timed_out from None
        finally:
            del self.running[number]
        return outcome

    def _start_in_thread(self, threads: ThreadPoolExecutor, call: RunningCall) -> asyncio.Future[Outcome]:
        try:
            run = contextvars.copy_context().run  # what an interceptor made current is so in the thread, too
            return asyncio.get_running_loop().run_in_executor(threads, run, self._in_thread, call)
        except RuntimeError as exc:  # the executor was shut down: at exit Python does that before anything is closed
            raise ThreadsEnded from exc

    def _in_thread(self, call: RunningCall) -> Outcome:
        call.task, call.thread_id = None, threading.get_ident()
        try:
            return without_exit(self._listener, list(call.messages))
        except TimeoutError as exc:
            call.timed_out = exc
            raise

    async def consume(self, topic: str, messages: list[MessageExt]) -> ListenerResult:
        """Give messages of a queue of `topic` to the listener; what it raises is logged and means LATER.

        What it returns that is no result means LATER too, told once: whether True was meant as done is only a guess.
        ThreadsEnded: as `call`; the messages are neither done nor failed.
        """
        started = time.monotonic()
        traced = None if self._tracer is None else self._tracer.before(messages)
        error: BaseException | None = None
        result: ListenerResult
        try:
            result = await self._intercepted(messages)
        except ThreadsEnded:
            raise
        except WrongResult as exc:
            self._tell_once(exc)
            result, error = ConsumeResult.LATER, exc
        except (Exception, asyncio.CancelledError) as exc:  # the listener's bug: logged in full; they come again
            if isinstance(exc, asyncio.CancelledError) and _is_being_cancelled():
                raise  # it is this call that was cancelled, and not something that the listener waited for
            logger.exception(
                "listener failed (msg_id=%s, count=%s)",
                messages[0].msg_id,
                len(messages),
                extra={"event": "listener_failed", "msg_id": messages[0].msg_id, "count": len(messages)},
            )
            result, error = ConsumeResult.LATER, exc
        is_done = result is ConsumeResult.SUCCESS
        if not is_done:
            asked = "RetryLater" if isinstance(result, RetryLater) else "the listener returned LATER"
            note_cause(messages, result if isinstance(result, DeadLetter) else error or asked)
        took_s = time.monotonic() - started
        self._counters.consumed(topic, len(messages), is_done=is_done, took_s=took_s)
        if traced is not None and self._tracer is not None:
            self._tracer.after(traced, took_s, is_done=is_done, has_raised=error is not None)
        return result

    async def _intercepted(self, messages: list[MessageExt]) -> ListenerResult:
        if self._around is None:
            return await self.call(messages)
        return checked_result(await self._around(messages, functools.partial(self.call, messages)))

    def _tell_once(self, wrong: WrongType) -> None:
        if not self._has_told_wrong_result:
            self._has_told_wrong_result = True
            logger.error(
                "listener returned no result, its messages are delivered again: %s",
                wrong,
                extra={"event": "listener_result_wrong", "error": str(wrong)},
            )


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def checked_result(outcome: object) -> ListenerResult:
    """What a listener returned, as a result; None is SUCCESS. WrongType when it is none."""
    if outcome is None or outcome is ConsumeResult.SUCCESS:
        return ConsumeResult.SUCCESS
    if isinstance(outcome, ConsumeResult | RetryLater):
        return outcome
    raise WrongResult(
        f"a listener returns ConsumeResult.SUCCESS, ConsumeResult.LATER, RetryLater(…) or nothing, not {outcome!r:.60}"
    )
