"""Whose turn it is when there is more to do than time: by what each connection and each address has cost so far.

Requests are not alike, one may cost what a thousand others do, so what counts is the loop's time. Every connection has
an account, every address one for all its connections. There are two lines (the idea is that of fq_codel's new and old
flows):

    the light line   who comes with something new and is within its allowance: a few percent of the time, saved up
                     for a while. Who came first is first, but what probably takes long stands further back
    the heavy line   who had a turn and has more, or has used up its allowance. Who has spent least is first: among
                     addresses, then among the connections of that address (start-time fair queueing)

The light line goes first, but for one turn in HEAVY_TURN_EACH. So a client that asks little waits for nobody who asks
much, be it many requests or costly ones, and among those who ask much four hundred connections of one host are one
host. In the heavy line idle time is not saved up: who joins starts where the others are (`floor`), and what is owed
beyond DEBT_SECONDS_MAX is forgiven, for what was costly a minute ago may be cheap now.

No clock and no loop here: the lanes measure and charge, and tell the time.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from typing import Generic, TypeVar

DEBT_SECONDS_MAX = 0.1  # how far behind the others one can fall
HEAVY_TURN_EACH = 8  # turns, while somebody stands in the light line
ALLOWANCE = 0.05  # of the time, a connection
ALLOWANCE_SAVED_SECONDS = 0.05  # what it may have saved of it
ADDRESS_ALLOWANCE = 0.25  # of the time, all connections of an address
ADDRESS_ALLOWANCE_SAVED_SECONDS = 0.25
BACK_A_SECOND = 8.0  # seconds that a request of one second stands further back in the light line
BACK_FOR_ADDRESS_SECONDS = 0.1  # that who is light stands further back when its address is not
FIRST_REQUEST_SECONDS = 0.010  # what a request of an unknown address is taken to cost: much, so one comes first
REQUEST_SECONDS_MIN = 0.000_001  # no clock is so fine that nothing takes no time
ADDRESSES_REMEMBERED_MAX = 4096  # without a connection: who comes anew for each request is known all the same

_Item = TypeVar("_Item")


class _Spender:
    """Time that was spent, and what is left of an allowance; both in seconds."""

    __slots__ = ("_allowance", "_left", "_left_max", "_seen_at", "spent")

    def __init__(self, allowance: float, saved_max: float) -> None:
        self.spent = 0.0
        self._allowance = allowance
        self._left = self._left_max = saved_max
        self._seen_at = 0.0

    def is_within_allowance(self, now: float) -> bool:
        """Whether it has spent no more than it may. now: monotonic seconds, at which this is asked."""
        self._left = min(self._left + (now - self._seen_at) * self._allowance, self._left_max)
        self._seen_at = now
        return self._left > 0


class AddressAccount(_Spender):
    """What all connections of one address cost.

    floor: where a connection that joins its others starts, seconds. waiting: connections that wait for a turn.
    """

    __slots__ = ("connections", "floor", "ledger", "request_seconds", "waiting")

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ADDRESS_ALLOWANCE, ADDRESS_ALLOWANCE_SAVED_SECONDS)
        self.ledger = ledger
        self.connections = 0
        self.floor = 0.0
        self.waiting = 0
        self.request_seconds = FIRST_REQUEST_SECONDS


class Account(_Spender):
    """What one connection costs.

    spent: seconds of the loop's time. begun: coroutines of its requests under way. request_seconds: what reading and
    serving its next request will probably take, by the last ones: rising at once, falling by half.
    """

    __slots__ = ("address", "begun", "is_known", "request_seconds")

    def __init__(self, address: AddressAccount) -> None:
        super().__init__(ALLOWANCE, ALLOWANCE_SAVED_SECONDS)
        self.address = address
        self.spent = address.floor
        self.begun = 0
        self.is_known = False
        self.request_seconds = address.request_seconds

    def charge(self, seconds: float) -> None:
        """Book time that was spent, or less than none when less was needed than was booked before."""
        self.spent += seconds
        self._left -= seconds
        address = self.address
        address.spent += seconds
        address._left -= seconds

    def note(self, seconds: float, count: int) -> None:
        """So long took its last `count` requests."""
        each, known = seconds / count, self.request_seconds
        if each < REQUEST_SECONDS_MIN:
            each = REQUEST_SECONDS_MIN
        if self.is_known:
            self.request_seconds = each if each > known else (known + each) / 2
            return
        self.is_known = True
        self.request_seconds = each
        self.address.request_seconds = (self.address.request_seconds + each) / 2


class Ledger:
    """All accounts of a process.

    floor: where an address that joins the others starts, seconds. waiting: addresses that have connections which wait
    for a turn.
    """

    def __init__(self) -> None:
        self.floor = 0.0
        self.waiting = 0
        self._addresses: OrderedDict[str, AddressAccount] = OrderedDict()  # the one used last stands last

    def open(self, address: str) -> Account:
        """The account of a new connection."""
        shared = self._addresses.get(address)
        if shared is None:
            self._forget_the_oldest()
            shared = self._addresses[address] = AddressAccount(self)
        self._addresses.move_to_end(address)
        shared.connections += 1
        return Account(shared)

    def close(self, account: Account) -> None:
        """The connection is gone; the next one of its address is taken to cost as much."""
        shared = account.address
        shared.connections -= 1
        shared.request_seconds = (shared.request_seconds + account.request_seconds) / 2

    def begin_waiting(self, account: Account) -> None:
        """One more connection waits for a turn."""
        self.waiting += not account.address.waiting
        account.address.waiting += 1

    def end_waiting(self, account: Account) -> None:
        """One connection less does."""
        account.address.waiting -= 1
        self.waiting -= not account.address.waiting

    def share(self, account: Account) -> float:
        """What part of all that is read ahead a connection may bring: addresses share alike, and connections theirs."""
        return 1 / (max(self.waiting, 1) * max(account.address.waiting, 1))

    def _forget_the_oldest(self) -> None:
        """Make room for an address, at the cost of one that has no connection."""
        while len(self._addresses) >= ADDRESSES_REMEMBERED_MAX:
            for address, account in self._addresses.items():
                if account.connections <= 0:
                    del self._addresses[address]
                    break
            else:
                return  # all are connected: their number is bounded by that of connections


class TurnQueue(Generic[_Item]):
    """Items that wait for their turn, each under an account: a light and a heavy line."""

    def __init__(self) -> None:
        self._light: list[tuple[float, int, _Item]] = []  # a heap by place
        self._heavy = _HeavyLine[_Item]()
        self._numbers = itertools.count()  # who came first, where all else is equal
        self._light_turns = 0  # since the last heavy one

    def __len__(self) -> int:
        return len(self._light) + len(self._heavy)

    def clear(self) -> None:
        """Nobody waits any longer."""
        self._light.clear()
        self._heavy.clear()

    def put(self, account: Account, item: _Item, now: float, *, is_new: bool = True) -> None:
        """Wait for a turn. is_new: the account had none just now from which this is left. now: monotonic seconds."""
        if not is_new or not account.is_within_allowance(now):
            self._heavy.put(account, item, joins=is_new)
            return
        place = now + BACK_A_SECOND * account.request_seconds
        if not account.address.is_within_allowance(now):
            place += BACK_FOR_ADDRESS_SECONDS
        heapq.heappush(self._light, (place, next(self._numbers), item))

    def take(self) -> _Item:
        """The item whose turn it is. Raises IndexError when nobody waits."""
        if self._light and (self._light_turns < HEAVY_TURN_EACH - 1 or not len(self._heavy)):
            self._light_turns += 1
            return heapq.heappop(self._light)[2]
        self._light_turns = 0
        return self._heavy.take()


class _HeavyLine(Generic[_Item]):
    """Who has spent least is first."""

    def __init__(self) -> None:
        self._addresses: list[tuple[float, int, AddressAccount]] = []  # a heap of those that have a line
        self._lines: dict[AddressAccount, list[tuple[float, int, Account, _Item]]] = {}
        self._numbers = itertools.count()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def clear(self) -> None:
        self._addresses.clear()
        self._lines.clear()
        self._size = 0

    def put(self, account: Account, item: _Item, *, joins: bool) -> None:
        """joins: it does not come back from a turn of this line, and has saved nothing."""
        address = account.address
        line = self._lines.get(address)
        if line is None:
            line = self._lines[address] = []
            floor = address.ledger.floor
            address.spent = min(max(address.spent, floor) if joins else address.spent, floor + DEBT_SECONDS_MAX)
            heapq.heappush(self._addresses, (address.spent, next(self._numbers), address))
        spent = max(account.spent, address.floor) if joins else account.spent
        account.spent = min(spent, address.floor + DEBT_SECONDS_MAX)
        # Of two that have spent the same the cheaper one is first: it keeps the other waiting for less.
        heapq.heappush(line, (account.spent + account.request_seconds, next(self._numbers), account, item))
        self._size += 1

    def take(self) -> _Item:
        """Accounts are charged while they wait: an entry that stands too far ahead is put where it belongs when it
        comes up, which is early enough, for spending only moves it back.
        """
        addresses = self._addresses
        while (address := addresses[0][2]).spent > addresses[0][0]:
            heapq.heapreplace(addresses, (address.spent, next(self._numbers), address))
        line = self._lines[address]
        while (due := line[0][2].spent + line[0][2].request_seconds) > line[0][0]:
            _, _, account, item = line[0]
            heapq.heapreplace(line, (due, next(self._numbers), account, item))
        _, _, account, item = heapq.heappop(line)
        address.ledger.floor = max(address.ledger.floor, address.spent)
        address.floor = max(address.floor, account.spent)
        self._size -= 1
        if not line:
            del self._lines[address]
            heapq.heappop(addresses)
        return item
