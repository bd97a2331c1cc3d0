"""Every exception of GantryMQ grows from this tree; in brackets the built-in class that it is, too.

GantryError
├─ ConfigError               a setting is missing, unknown or out of range (ValueError)
├─ WrongType                 an argument is of another type than its parameter (TypeError)
├─ ProtocolError             the peer broke the wire protocol
│  ├─ FrameError             a frame's lengths make no sense: only closing the connection is left
│  └─ BodyError              a body is not what its request code promises
├─ RecordError               bytes that should be a stored message are not
├─ ConnectError              no connection could be made, or it was lost before the answer came (ConnectionError)
├─ RequestTimeout            the peer did not answer in time (TimeoutError)
├─ ResponseError             the peer answered with a code other than the ones the call accepts
│  ├─ (code, remark say which and why)
│  └─ LeaseEnded          a polled message is leased no longer: acknowledged already, or delivered again
├─ RouteNotFound             no name server knows a route for the topic
│  └─ NoBrokerYet            … because no broker has registered there yet
├─ MessageRejected           the message can't be sent as it is: name, size, properties (ValueError)
├─ PayloadError              a body is no payload of the type that an application wants (ValueError)
├─ SendIncomplete            some of many messages were not sent
├─ PartlyDone                an act on several servers was done at some of them
└─ ClientClosed              the client was closed, or was never started

All of them can be pickled, so they pass from process to process with their facts. gantrymq.remoting.failures gives
those that are about a peer its role, the request's name and what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class GantryError(Exception):
    """Root of every exception raised on purpose by this project."""

    def __reduce__(self) -> tuple[Any, ...]:
        # The usual way calls the class with `args`, which is the text and not what __init__ takes.
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[GantryError], args: tuple[object, ...]) -> GantryError:
    """An unpickled error without its attributes, which follow."""
    error = kind.__new__(kind, *args)
    error.args = args
    return error


class ConfigError(GantryError, ValueError):
    """A setting is missing, unknown, or outside its range; the text names it and the fix."""


class WrongType(GantryError, TypeError):
    """An argument is of another type than its parameter; the text names both."""


class PayloadError(GantryError, ValueError):
    """A body is no payload of the type that is wanted, or a payload can't be written as a body."""


class ProtocolError(GantryError):
    """The peer sent something the protocol does not allow."""


class FrameError(ProtocolError):
    """A frame's lengths contradict each other or exceed the limit. The byte stream can't be followed further."""


class BodyError(ProtocolError):
    """A body could not be read as what its request code promises."""


class RecordError(GantryError):
    """Bytes that should be a stored message are not. `position` is where the record starts in the buffer."""

    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class ConnectError(GantryError, ConnectionError):
    """No connection to `address` could be made, or it was lost before the answer came.

    `role` is what was expected there ("broker", "name server", or ""), `hint` what to do next.
    """

    def __init__(self, address: str, reason: str, *, role: str = "", hint: str = "") -> None:
        super().__init__(f"{_peer(role, address)}: {reason}{_next_step(hint)}")
        self.address = address
        self.reason = reason
        self.role = role
        self.hint = hint


class RequestTimeout(GantryError, TimeoutError):
    """`address` did not answer request `code` within `timeout_s` seconds. The request may still have been executed.

    `request` is the name of the code, `role` what was expected at the address, `hint` what to do next; each may be
    empty.
    """

    def __init__(
        self, address: str, code: int, timeout_s: float, *, role: str = "", request: str = "", hint: str = ""
    ) -> None:
        super().__init__(
            f"{_peer(role, address)} did not answer {request or f'request {code}'} within {timeout_s:.3g} s; "
            f"it may still have executed the request{_next_step(hint)}"
        )
        self.address = address
        self.code = code
        self.timeout_s = timeout_s
        self.role = role
        self.request = request
        self.hint = hint


class ResponseError(GantryError):
    """The peer answered with `code`, which this call does not accept; `remark` is the peer's explanation.

    `name` is the name of the code, `request` that of the request, `role` the peer's, `hint` what to do next; each may
    be empty.
    """

    def __init__(
        self,
        code: int,
        remark: str | None,
        *,
        address: str = "",
        role: str = "",
        request: str = "",
        name: str = "",
        hint: str = "",
    ) -> None:
        who = f"{_peer(role, address) or 'the peer'} answered{f' {request}' if request else ''} with "
        what = f"{name} ({code})" if name else f"code {code}"
        super().__init__(f"{who}{what}: {remark or 'no remark'}{_next_step(hint)}")
        self.code = code
        self.remark = remark
        self.address = address
        self.role = role
        self.request = request
        self.name = name
        self.hint = hint


class LeaseEnded(ResponseError):
    """A message that was polled is leased no longer: it was acknowledged already, or its invisible time is over and it
    is delivered again."""


class RouteNotFound(GantryError):
    """No name server knows a route for `topic` (`is_unknown`), or none of its queues can be used."""

    def __init__(self, topic: str, reason: str = "") -> None:
        unknown = "no name server knows this topic: is the name right, was it created?"
        super().__init__(f"{topic}: {reason or unknown}")
        self.topic = topic
        self.is_unknown: bool = not reason


class NoBrokerYet(RouteNotFound):
    """The name server knows no broker at all, so `topic` may well exist: it has just started, or every broker is
    away."""


class MessageRejected(GantryError, ValueError):
    """The message can't be sent as it is: its name, size or properties break a limit."""


class SendIncomplete(GantryError):
    """Some of many messages were not sent.

    `failures`: index of the message to its error; `results`: the SendResult of each message, None of those that failed;
    `sent`: how many have one.
    """

    def __init__(self, failures: dict[int, GantryError], results: Sequence[Any]) -> None:
        first = min(failures)
        super().__init__(f"{len(failures)} of {len(results)} messages not sent; first: {failures[first]}")
        self.failures: dict[int, GantryError] = failures
        self.results: list[Any] = list(results)
        self.sent: int = sum(result is not None for result in self.results)


class PartlyDone(GantryError):
    """An act on several servers succeeded at `done` and failed at `failures` (name or address to error)."""

    def __init__(self, done: list[str], failures: Mapping[str, GantryError]) -> None:
        first = min(failures)
        at = f"done at {', '.join(sorted(done))}; " if done else ""
        super().__init__(f"{at}failed at {', '.join(sorted(failures))}: {failures[first]}")
        self.done = done
        self.failures: dict[str, GantryError] = dict(failures)


class ClientClosed(GantryError):
    """The client was closed, or was never started."""


def _peer(role: str, address: str) -> str:
    return f"{role} {address}".strip()


def _next_step(hint: str) -> str:
    return f" ({hint})" if hint else ""
