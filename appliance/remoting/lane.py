"""One lane: a bounded queue of requests of one kind, and what became of them. Lanes serves them (lanes.py)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from appliance.process.fair_queue import Account
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

QUEUED_BYTES_MAX = 64 * 1024 * 1024  # bodies waiting in one lane; with 4 MiB bodies the count alone bounds nothing
QUEUED_MESSAGES_BYTES_MAX = 256 * 1024 * 1024  # where they are messages

Answer = RemotingCommand | bytes | None
Handler = Callable[[Any, "ServerConnection", RemotingCommand], "Answer | Awaitable[Answer]"]


class Route(NamedTuple):
    """Who serves a request code, and in which lane it waits."""

    handler: Handler
    lane: str


@dataclass(frozen=True)
class LaneLimits:
    """capacity: requests; wait_ms_max: how long one may wait before it is refused (None: as long as it takes)."""

    capacity: int
    wait_ms_max: int | None = None
    queued_bytes_max: int = QUEUED_BYTES_MAX


class Turn:
    """Requests that one connection brought at once.

    arrived: monotonic seconds when they were taken from its bytes. served: what the lanes had served until then, in
    seconds. request_seconds: what one of them was expected to take; prepaid: what was charged for it when it was
    queued. read_seconds: what reading them took, not charged yet. left: of them, not served yet. has_more: the
    connection has more at hand, and is parked when these are served: what it brought first stays first.
    """

    __slots__ = (
        "account",
        "arrived",
        "has_more",
        "left",
        "prepaid",
        "read_seconds",
        "request_seconds",
        "served",
    )

    def __init__(self, account: Account) -> None:
        self.account = account
        self.arrived = self.served = 0.0
        self.left = 0
        self.has_more = False
        self.request_seconds = self.prepaid = self.read_seconds = 0.0


class Lane:
    """One bounded queue of requests with its watermarks."""

    __slots__ = (
        "capacity",
        "expired",
        "name",
        "oneway_refused",
        "queue",
        "queued_bytes",
        "queued_bytes_max",
        "rejected",
        "running",
        "served",
        "size_peak",
        "wait_peak",
        "wait_seconds_max",
    )

    def __init__(self, name: str, limits: LaneLimits) -> None:
        self.name = name
        self.set_limits(limits)
        self.queue: deque[tuple[Turn, ServerConnection, RemotingCommand, Handler]] = deque()
        self.queued_bytes = 0
        self.running = 0  # coroutines under way
        self.served = 0
        self.rejected = 0
        self.expired = 0
        self.oneway_refused = 0  # of the rejected: nobody was told
        self.size_peak = 0  # since the last look at the watermarks
        self.wait_peak = 0.0  # seconds, likewise

    def set_limits(self, limits: LaneLimits) -> None:
        """Take other limits from now on; what already waits stays."""
        self.capacity = limits.capacity
        self.queued_bytes_max = limits.queued_bytes_max
        self.wait_seconds_max = limits.wait_ms_max / 1000 if limits.wait_ms_max is not None else float("inf")

    @property
    def size(self) -> int:
        """Requests waiting or under way."""
        return len(self.queue) + self.running

    def head_wait_ms(self) -> int:
        """How long the oldest waiting request has waited, ms; 0 when none waits."""
        return int((time.monotonic() - self.queue[0][0].arrived) * 1000) if self.queue else 0

    def take_peaks(self) -> tuple[int, int]:
        """Greatest size and wait (ms) since the last call."""
        peaks = self.size_peak, int(self.wait_peak * 1000)
        self.size_peak, self.wait_peak = self.size, 0.0
        return peaks
