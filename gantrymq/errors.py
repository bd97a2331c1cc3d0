"""Every exception of GantryMQ grows from this tree.

GantryError
├─ ConfigError               a setting is missing, unknown or out of range
├─ ProtocolError             the peer broke the wire protocol
│  ├─ FrameError             a frame's lengths make no sense: only closing the connection is left
│  └─ BodyError              a body is not what its request code promises
├─ RecordError               bytes that should be a stored message are not
├─ ConnectError              no connection could be made, or it was lost before the answer came
├─ RequestTimeout            the peer did not answer in time
├─ ResponseError             the peer answered with a code other than the ones the call accepts
│  └─ (code, remark say which and why)
├─ RouteNotFound             no name server knows a route for the topic
├─ MessageRejected           the message can't be sent as it is (name, size, properties)
├─ SendIncomplete            some of many messages were not sent
├─ PartlyDone                an act on several servers was done at some of them
└─ ClientClosed              the client was closed, or was never started
"""

from __future__ import annotations

from collections.abc import Mapping


class GantryError(Exception):
    """Root of every exception raised on purpose by this project."""


class ConfigError(GantryError):
    """A setting is missing, unknown, or outside its range; the text names it and the fix."""


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


class ConnectError(GantryError):
    """No connection to `address` could be made, or it was lost before the answer came."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}")
        self.address = address
        self.reason = reason


class RequestTimeout(GantryError):
    """`address` did not answer request `code` within `timeout_s` seconds. The request may still have been executed."""

    def __init__(self, address: str, code: int, timeout_s: float) -> None:
        super().__init__(f"{address} did not answer request {code} within {timeout_s:g} s")
        self.address = address
        self.code = code
        self.timeout_s = timeout_s


class ResponseError(GantryError):
    """The peer answered with `code`, which this call does not accept; `remark` is the peer's explanation."""

    def __init__(self, code: int, remark: str | None, *, address: str = "") -> None:
        where = f" from {address}" if address else ""
        super().__init__(f"code {code}{where}: {remark or 'no remark'}")
        self.code = code
        self.remark = remark
        self.address = address


class RouteNotFound(GantryError):
    """No name server knows a route for `topic`."""

    def __init__(self, topic: str, reason: str = "no route info of this topic") -> None:
        super().__init__(f"{topic}: {reason}")
        self.topic = topic


class MessageRejected(GantryError):
    """The message can't be sent as it is: its name, size or properties break a limit."""


class SendIncomplete(GantryError):
    """Some of many messages were not sent. `failures`: index of the message to its error; `sent`: how many were."""

    def __init__(self, failures: dict[int, GantryError], sent: int) -> None:
        first = min(failures)
        super().__init__(f"{len(failures)} of {len(failures) + sent} messages not sent; first: {failures[first]}")
        self.failures = failures
        self.sent = sent


class PartlyDone(GantryError):
    """An act on several servers succeeded at `done` and failed at `failures` (name or address to error)."""

    def __init__(self, done: list[str], failures: Mapping[str, GantryError]) -> None:
        first = min(failures)
        at = f"done at {', '.join(sorted(done))}; " if done else ""
        super().__init__(f"{at}failed at {', '.join(sorted(failures))}: {failures[first]}")
        self.done = done
        self.failures = dict(failures)


class ClientClosed(GantryError):
    """The client was closed, or was never started."""
