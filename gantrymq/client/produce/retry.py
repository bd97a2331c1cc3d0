"""Which failures of a send may pass, where to try again, and after what pause: decided here, without I/O or a clock.

What may pass by itself (no connection, no answer, a busy broker, no name server) is tried again until the call's time
is up: at once where the topic has a broker that did not fail yet, else after a pause that grows and is jittered, so
that many clients do not come back at the same moment. What another broker may see differently (no such topic there, no
permission there) is tried once at each. Everything else is final.
"""

from __future__ import annotations

import random
import ssl

from gantrymq.errors import ConnectError, GantryError, NoBrokerYet, RequestTimeout, ResponseError
from gantrymq.remoting.codes import ResponseCode

PAUSE_S = 0.1  # before the second try; doubles
PAUSE_S_MAX = 1.0
TRIES_A_CALL = 3  # a try without an answer ends after this part of the call's time
TRY_S = 3.0  # or after this, as in Java, where another broker can be tried; doubles when none answered

BUSY = ResponseCode.SYSTEM_BUSY.value
# The broker is stopping, has no space, or has too much to do.
PASSING_CODES = frozenset({BUSY, ResponseCode.SERVICE_NOT_AVAILABLE.value})
# With SERVICE_NOT_AVAILABLE those of Java's DefaultMQProducer.retryResponseCodes; 204 and 205 are never sent by 4.9.
ELSEWHERE_CODES = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST.value,
        ResponseCode.SYSTEM_ERROR.value,
        ResponseCode.NO_PERMISSION.value,
        204,
        205,
    }
)


class Retry:
    """The further tries of one message. retries: so many at most, None for no limit but time."""

    def __init__(self, retries: int | None) -> None:
        self.failed_at: set[str] = set()  # brokers that failed since the last pause
        self.tries: int = 0
        self._retries = retries
        self._refused_at: set[str] = set()
        self._pauses = 0

    @property
    def rounds(self) -> int:
        """How often all brokers had failed."""
        return self._pauses

    def moved(self) -> None:
        """A broker has another master: what it does not accept in its first moment it soon will."""
        self._pauses = 0

    def pause_after(self, failure: GantryError, broker: str, brokers: set[str]) -> float | None:
        """Seconds until the next try, None when none may be made. broker: where the last try failed, empty when it
        came to none; brokers: all that could take the message."""
        self.tries += 1
        if self._retries is not None and self.tries > self._retries:
            return None
        if broker:
            self.failed_at.add(broker)
        if is_refused_there(failure):
            self._refused_at.add(broker)
            return 0.0 if brokers - self._refused_at else None
        if not may_pass(failure):
            return None
        if brokers - self.failed_at and not is_busy(failure):
            return 0.0
        self.failed_at = set(self._refused_at)
        pause_s: float = min(PAUSE_S * 2**self._pauses, PAUSE_S_MAX)
        self._pauses = min(self._pauses + 1, 16)
        return pause_s * random.uniform(0.5, 1.0)


def may_pass(failure: GantryError) -> bool:
    """Whether the same try may succeed later."""
    if isinstance(failure, ResponseError):
        return failure.code in PASSING_CODES
    if isinstance(failure, ConnectError):  # a certificate does not become valid by waiting
        return not isinstance(failure.__cause__, ssl.SSLError)
    return isinstance(failure, RequestTimeout | NoBrokerYet)


def is_refused_there(failure: GantryError) -> bool:
    """Whether another broker may take what this one refused."""
    return isinstance(failure, ResponseError) and failure.code in ELSEWHERE_CODES


def is_busy(failure: GantryError) -> bool:
    """Whether a broker asked for less: then another one does not get it at once."""
    return isinstance(failure, ResponseError) and failure.code == BUSY
