"""The first try of a message that a thread sends and waits for, without a task or a future of the event loop.

Nearly every send ends with its first try, and a coroutine handed from thread to thread costs many times what such a
send does. So the thread packs the message, writes the request on a connection of its own and waits for the answer
there: `at_once`. Where it has none (TLS, too many threads), `begin` runs on the loop and only writes the request, and
the loop's connection gives the answer to this object in place of a future. Everything else is `go_on`, the coroutine
that any send is: where a route or a connection has to be made first, where the first try failed, or stored the message
less safely than asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

from gantrymq.client.connection.send_codec import Outgoing
from gantrymq.client.produce.sender import Sender
from gantrymq.client.results import SendResult, SendStatus
from gantrymq.errors import ConnectError, GantryError
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.command import RemotingCommand
from gantrymq.remoting.thread_connections import ThreadConnections


class FirstTry:
    """`has_ended` is released when the try has ended, whatever came of it: then `result`, or else `go_on`. queue: the
    one that was chosen for the message, None for any."""

    __slots__ = (
        "_answer",
        "_at",
        "_chosen",
        "_connections",
        "_deadline",
        "_failure",
        "_first",
        "_outgoing",
        "_sender",
        "_timeout_s",
        "has_ended",
    )

    def __init__(
        self,
        sender: Sender,
        connections: ThreadConnections,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        timeout_s: float,
    ) -> None:
        self._sender = sender
        self._connections = connections
        self._outgoing = outgoing
        self._chosen = queue
        self._timeout_s = timeout_s
        self._first: MessageQueue | None = None  # where to begin
        self._at: MessageQueue | None = None  # where it was tried
        self._deadline = time.monotonic() + timeout_s  # the clock of asyncio's event loops, too
        self._answer: RemotingCommand | None = None
        self._failure: GantryError | None = None
        self.has_ended: threading.Lock = threading.Lock()
        self.has_ended.acquire()

    def at_once(self) -> bool:
        """In the thread: try over the thread's own connection. False, and nothing sent, when it can't have one."""
        at = self._first = self._sender.first_queue(self._outgoing.topic, self._chosen)
        address = None if at is None else self._sender.address_for_thread(self._outgoing, at)
        try:
            connection = None if address is None else self._connections.take(address)
        except ConnectError as exc:
            self._at, self._failure = at, exc
            return True
        if at is None or connection is None:
            return False
        self._at = at
        reason = "call interrupted"  # by a signal's handler
        try:
            code, opaque, frame = self._sender.encoded(self._outgoing, at, connection.stamper)
            self._answer = connection.call(code, opaque, frame, self._try_s())
        except GantryError as exc:
            self._failure = exc
            reason = str(exc)
        finally:
            if self._answer is not None:
                self._connections.give_back(connection)
            else:
                self._connections.drop(connection, reason)
        return True

    def _try_s(self) -> float:
        return self._sender.try_s(self._outgoing.topic, self._chosen, self._timeout_s)

    def begin(self) -> None:
        """On the loop: write the request, if nothing has to be waited for before."""
        try:
            with contextlib.suppress(GantryError):  # `go_on` meets it again, and raises it in the thread
                at = self._first
                if at is not None and self._sender.begin(self._outgoing, at, self, self._try_s()):
                    self._at = at
        finally:
            if self._at is None:
                self.has_ended.release()

    def result(self) -> SendResult | None:
        """Once it has ended: the result of a message that was stored as asked; None when it takes `go_on`."""
        if self._answer is None or self._at is None:
            return None
        try:
            result = self._sender.result(self._answer, self._outgoing, self._at)
        except GantryError:
            return None
        return result if result.status is SendStatus.SEND_OK else None

    async def go_on(self) -> SendResult:
        """What `Sender.deliver` does after its first try, or all of it."""
        sender, outgoing, at = self._sender, self._outgoing, self._at
        if at is None and self._failure is None:
            left_s = max(self._deadline - asyncio.get_running_loop().time(), 0)
            return await sender.deliver(outgoing, left_s, self._chosen, self._first)
        failure = self._failure
        if failure is None:
            assert self._answer is not None and at is not None
            try:
                result = sender.result(self._answer, outgoing, at)
                return await sender.stored_safely(result, outgoing, self._deadline, self._timeout_s, self._chosen)
            except GantryError as exc:
                failure = exc
        return await sender.deliver_again(outgoing, at, failure, self._deadline, self._timeout_s, self._chosen)

    # -- in place of a future, for the connection ---------------------------------------------------------------------

    def done(self) -> bool:
        return self._answer is not None or self._failure is not None

    def set_result(self, answer: RemotingCommand, /) -> None:
        self._answer = answer
        self.has_ended.release()

    def set_exception(self, failure: GantryError, /) -> None:
        self._failure = failure
        self.has_ended.release()

    def exception(self) -> GantryError | None:
        return self._failure
