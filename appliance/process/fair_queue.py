"""Fair queuing of connections under overload, by the time that each connection and each address has used so far.

One request may cost as much as a thousand others, so the unit is the event loop's time, not the number of requests.
Every connection has a usage, and every address one for all its connections. There are two queues (the idea of
fq_codel's new and old flows):

    light   connections with new requests that are within their allowance: a few percent of the time, which may be
            saved up for a while. First come, first served, but requests that probably take long are placed further back
    heavy   connections that had a turn and have more requests, or have used up their allowance. The least used time
            is first: among addresses, then among the connections of that address (start-time fair queuing)

The light queue goes first, except for one turn in HEAVY_TURN_EACH. So a client with few requests never waits behind
clients with many or expensive ones, and four hundred connections of one host get the share of one host. Idle time is
not saved up in the heavy queue: a connection that joins starts where the others are (`floor`). Debt beyond
DEBT_SECONDS_MAX is forgiven, because what was expensive a minute ago may be cheap now.

There is no clock and no loop in this module: the lanes measure, charge, and pass the time.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from typing import Generic, TypeVar

DEBT_SECONDS_MAX = 0.1  # how far a connection can fall behind the others
HEAVY_TURN_EACH = 8  # every eighth turn is the heavy queue's while the light queue is not empty
ALLOWANCE = 0.05  # share of the time, for a connection
ALLOWANCE_SAVED_SECONDS = 0.05  # the most that a connection can save up
ADDRESS_ALLOWANCE = 0.25  # share of the time, for all connections of an address
ADDRESS_ALLOWANCE_SAVED_SECONDS = 0.25
BACK_A_SECOND = 8.0  # a request of one second is placed as many seconds further back in the light queue
BACK_FOR_ADDRESS_SECONDS = 0.1  # a light connection is placed further back when its address is over its allowance
FIRST_REQUEST_SECONDS = 0.010  # assumed cost of an unknown address's request: high, so only one is read at first
REQUEST_SECONDS_MIN = 0.000_001  # below the clock's resolution the measured time is 0, and a count divides by it
ADDRESSES_REMEMBERED_MAX = 4096  # without a connection: clients that reconnect for each request keep their usage

_Item = TypeVar("_Item")


class _Usage:
    """Time that was used, and what is left of an allowance; both in seconds."""

    __slots__ = ("_allowance", "_left", "_left_max", "_seen_at", "spent")

    def __init__(self, allowance: float, saved_max: float) -> None:
        self.spent = 0.0
        self._allowance = allowance
        self._left = self._left_max = saved_max
        self._seen_at = 0.0

    def is_within_allowance(self, now: float) -> bool:
        """Whether some allowance is left. now: the current time, monotonic seconds."""
        self._left = min(self._left + (now - self._seen_at) * self._allowance, self._left_max)
        self._seen_at = now
        return self._left > 0


class AddressUsage(_Usage):
    """The time that all connections of one address have used.

    floor: the used time from which a joining connection starts, seconds. waiting: connections that wait for a turn.
    """

    __slots__ = ("connections", "floor", "request_seconds", "usage_table", "waiting")

    def __init__(self, usage_table: UsageTable) -> None:
        super().__init__(ADDRESS_ALLOWANCE, ADDRESS_ALLOWANCE_SAVED_SECONDS)
        self.usage_table = usage_table
        self.connections = 0
        self.floor = 0.0
        self.waiting = 0
        self.request_seconds = FIRST_REQUEST_SECONDS


class ConnectionUsage(_Usage):
    """The time that one connection has used.

    spent: seconds of the loop's time. begun: running coroutines of its requests. request_seconds: estimated time to
    read and serve its next request, from the last ones: it rises at once and falls by half.
    """

    __slots__ = ("address", "begun", "is_known", "request_seconds")

    def __init__(self, address: AddressUsage) -> None:
        super().__init__(ALLOWANCE, ALLOWANCE_SAVED_SECONDS)
        self.address = address
        self.spent = address.floor
        self.begun = 0
        self.is_known = False
        self.request_seconds = address.request_seconds

    def charge(self, seconds: float) -> None:
        """Add used time; negative seconds correct a prepayment that was too high."""
        self.spent += seconds
        self._left -= seconds
        address = self.address
        address.spent += seconds
        address._left -= seconds

    def note(self, seconds: float, count: int) -> None:
        """Record how long its last `count` requests took, all together."""
        each, known = seconds / count, self.request_seconds
        if each < REQUEST_SECONDS_MIN:
            each = REQUEST_SECONDS_MIN
        if self.is_known:
            self.request_seconds = each if each > known else (known + each) / 2
            return
        self.is_known = True
        self.request_seconds = each
        self.address.request_seconds = (self.address.request_seconds + each) / 2


class UsageTable:
    """The usage of all addresses and connections of a process.

    floor: the used time from which a joining address starts, seconds. waiting: addresses with waiting connections.
    """

    def __init__(self) -> None:
        self.floor = 0.0
        self.waiting = 0
        self._addresses: OrderedDict[str, AddressUsage] = OrderedDict()  # least recently used first

    def open(self, address: str) -> ConnectionUsage:
        """Return the usage of a new connection."""
        shared = self._addresses.get(address)
        if shared is None:
            self._forget_the_oldest()
            shared = self._addresses[address] = AddressUsage(self)
        self._addresses.move_to_end(address)
        shared.connections += 1
        return ConnectionUsage(shared)

    def close(self, usage: ConnectionUsage) -> None:
        """Note that the connection is gone; the estimate for the next one of its address includes its last cost."""
        shared = usage.address
        shared.connections -= 1
        shared.request_seconds = (shared.request_seconds + usage.request_seconds) / 2

    def begin_waiting(self, usage: ConnectionUsage) -> None:
        """Count one more connection that waits for a turn."""
        self.waiting += not usage.address.waiting
        usage.address.waiting += 1

    def end_waiting(self, usage: ConnectionUsage) -> None:
        """Count one waiting connection less."""
        usage.address.waiting -= 1
        self.waiting -= not usage.address.waiting

    def share(self, usage: ConnectionUsage) -> float:
        """Return the connection's share of what is read ahead: equal among addresses, then among their connections."""
        return 1 / (max(self.waiting, 1) * max(usage.address.waiting, 1))

    def _forget_the_oldest(self) -> None:
        """Make room for an address by removing the oldest one without a connection."""
        while len(self._addresses) >= ADDRESSES_REMEMBERED_MAX:
            for address, usage in self._addresses.items():
                if usage.connections <= 0:
                    del self._addresses[address]
                    break
            else:
                return  # all are connected: the limit of connections bounds the table


class FairQueue(Generic[_Item]):
    """Items that wait for their turn, each with the usage of a connection: a light and a heavy queue."""

    def __init__(self) -> None:
        self._light: list[tuple[float, int, _Item]] = []  # a heap, by the time at which an item is due
        self._heavy = _HeavyQueue[_Item]()
        self._numbers = itertools.count()  # tie-breaker: first come, first served
        self._light_turns = 0  # since the last heavy one

    def __len__(self) -> int:
        return len(self._light) + len(self._heavy)

    def clear(self) -> None:
        """Remove all items."""
        self._light.clear()
        self._heavy.clear()

    def put(self, usage: ConnectionUsage, item: _Item, now: float, *, is_new: bool = True) -> None:
        """Add an item. is_new: False for what a turn that just ended has left. now: monotonic seconds."""
        if not is_new or not usage.is_within_allowance(now):
            self._heavy.put(usage, item, joins=is_new)
            return
        # Expensive requests are placed as if they had come later, so cheap ones overtake them, but never for ever.
        place = now + BACK_A_SECOND * usage.request_seconds
        if not usage.address.is_within_allowance(now):
            place += BACK_FOR_ADDRESS_SECONDS
        heapq.heappush(self._light, (place, next(self._numbers), item))

    def take(self) -> _Item:
        """Remove and return the next item. Raises IndexError when the queue is empty."""
        if self._light and (self._light_turns < HEAVY_TURN_EACH - 1 or not len(self._heavy)):
            self._light_turns += 1
            return heapq.heappop(self._light)[2]
        self._light_turns = 0
        return self._heavy.take()


class _HeavyQueue(Generic[_Item]):
    """A queue of addresses, each with a queue of connections; the least used time is first in both."""

    def __init__(self) -> None:
        self._addresses: list[tuple[float, int, AddressUsage]] = []  # a heap of addresses with waiting items
        self._lines: dict[AddressUsage, list[tuple[float, int, ConnectionUsage, _Item]]] = {}
        self._numbers = itertools.count()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def clear(self) -> None:
        self._addresses.clear()
        self._lines.clear()
        self._size = 0

    def put(self, usage: ConnectionUsage, item: _Item, *, joins: bool) -> None:
        """Add an item. joins: it comes from outside this queue, so unused time of the past does not count."""
        address = usage.address
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = []
            floor = address.usage_table.floor
            address.spent = min(max(address.spent, floor) if joins else address.spent, floor + DEBT_SECONDS_MAX)
            heapq.heappush(self._addresses, (address.spent, next(self._numbers), address))
        spent = max(usage.spent, address.floor) if joins else usage.spent
        usage.spent = min(spent, address.floor + DEBT_SECONDS_MAX)
        # Of two that have spent the same the cheaper one is first: it keeps the other waiting for less.
        heapq.heappush(line, (usage.spent + usage.request_seconds, next(self._numbers), usage, item))
        self._size += 1

    def take(self) -> _Item:
        """Remove and return the item with the least used time."""
        # Usages are charged while their items wait, so a heap's keys may be too low. Used time only grows: it is
        # enough to correct an entry when it comes up.
        addresses = self._addresses
        while (address := addresses[0][2]).spent > addresses[0][0]:
            heapq.heapreplace(addresses, (address.spent, next(self._numbers), address))
        line = self._lines[address]
        while (due := line[0][2].spent + line[0][2].request_seconds) > line[0][0]:
            _, _, usage, item = line[0]
            heapq.heapreplace(line, (due, next(self._numbers), usage, item))
        _, _, usage, item = heapq.heappop(line)
        address.usage_table.floor = max(address.usage_table.floor, address.spent)
        address.floor = max(address.floor, usage.spent)
        self._size -= 1
        if not line:
            del self._lines[address]
            heapq.heappop(addresses)
        return item
