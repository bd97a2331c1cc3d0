"""One lane: a bounded queue of requests of one kind, with its counters. Lanes serves them (lanes.py)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from appliance.process.fair_queue import ConnectionUsage
from gantrymq.remoting.command import RemotingCommand

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection

QUEUED_BYTES_MAX = 64 * 1024 * 1024  # bodies waiting in one lane; with bodies of 4 MiB the number is no limit
QUEUED_MESSAGES_BYTES_MAX = 256 * 1024 * 1024  # the same for the lane of sends

Answer = RemotingCommand | bytes | None
Handler = Callable[
    ["ServerConnection", Any], "Answer | Awaitable[Answer]"
]  # the request in the shape it was decoded to


class Route(NamedTuple):
    """The handler of a request code, and the lane in which its requests wait."""

    handler: Handler
    lane: str


@dataclass(frozen=True)
class LaneLimits:
    """capacity: requests; wait_ms_max: how long a request may wait before it is refused (None: no limit)."""

    capacity: int
    wait_ms_max: int | None = None
    queued_bytes_max: int = QUEUED_BYTES_MAX


class Turn:
    """The requests that one connection submitted in one turn.

    arrived: when they were decoded, monotonic seconds. served: seconds that the lanes had worked until then.
    request_seconds: expected time of one request; prepaid: seconds charged for each when they were queued.
    read_seconds: time to read and decode them, not charged yet. left: how many are not served yet. has_more: the
    connection has further requests; it is parked when these are served, so that its requests stay in order.
    """

    __slots__ = (
        "arrived",
        "has_more",
        "left",
        "prepaid",
        "read_seconds",
        "request_seconds",
        "served",
        "usage",
    )

    def __init__(self, usage: ConnectionUsage) -> None:
        self.usage = usage
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
        self.running = 0  # running coroutines
        self.served = 0
        self.rejected = 0
        self.expired = 0
        self.oneway_refused = 0  # rejected one-way requests: no response tells their clients
        self.size_peak = 0  # since the last call of take_peaks
        self.wait_peak = 0.0  # seconds, likewise

    def set_limits(self, limits: LaneLimits) -> None:
        """Change the limits; requests that already wait stay."""
        self.capacity = limits.capacity
        self.queued_bytes_max = limits.queued_bytes_max
        self.wait_seconds_max = limits.wait_ms_max / 1000 if limits.wait_ms_max is not None else float("inf")

    @property
    def size(self) -> int:
        """Requests waiting or running."""
        return len(self.queue) + self.running

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait or run that no more are taken."""
        return len(self.queue) + self.running >= self.capacity

    def head_wait_ms(self) -> int:
        """The age of the oldest waiting request, ms; 0 when none waits."""
        return int((time.monotonic() - self.queue[0][0].arrived) * 1000) if self.queue else 0

    def take_peaks(self) -> tuple[int, int]:
        """Return the greatest size and wait (ms) since the last call, and reset both."""
        peaks = self.size_peak, int(self.wait_peak * 1000)
        self.size_peak, self.wait_peak = self.size, 0.0
        return peaks
