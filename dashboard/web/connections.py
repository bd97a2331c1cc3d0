"""The table of connections, and which one is closed when there are too many. Values only, no sockets.

A connection waits (for a head, or for an unauthenticated body) or is busy (a request is served, a websocket is open).
At the limit, the connection that has waited longest is closed: of the same address if that one has too many, of all
otherwise. So idle connections can't keep others out, and one address can't displace others.

Many people may share an address (a company's proxy, NAT). So live sockets of signed-in accounts, which are bounded by
account (`dashboard/live/sockets.py`), are counted in all only, as long as they leave a quarter of the places to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

Connection = TypeVar("Connection", bound=Hashable)


class ConnectionTable(Generic[Connection]):
    """Connections by the key of their address (`client_address.counted_address`).

    Those without a key, trusted proxies, count in all only.
    """

    def __init__(self, *, connections_max: int, per_address_max: int) -> None:
        self._connections_max = connections_max
        self._per_address_max = per_address_max
        self._keys: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._waiting: dict[Connection, None] = {}  # longest first
        self._waiting_of: dict[str, dict[Connection, None]] = {}
        self._signed_in: set[Connection] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def enter(self, connection: Connection, key: str) -> tuple[Connection, str] | None:
        """Count one more. Returns who has to go for it, perhaps itself, and why; None while there is room."""
        self._keys[connection] = key
        self._counts[key] += 1
        self.waits(connection)
        if key and self._counts[key] > self._per_address_max:
            return next(iter(self._waiting_of[key])), f"more than {self._per_address_max} of one address"
        if len(self._keys) > self._connections_max:
            return next(iter(self._waiting)), f"more than {self._connections_max} in all"
        return None

    def longest_waiting(self) -> Connection | None:
        """Who has waited longest; None when all are busy."""
        return next(iter(self._waiting), None)

    def waits(self, connection: Connection) -> None:
        """It waits from now on."""
        if connection in self._keys:
            self.is_busy(connection)
            self._waiting[connection] = None
            self._waiting_of.setdefault(self._keys[connection], {})[connection] = None

    def is_busy(self, connection: Connection) -> None:
        """It is served from now on, so it stays."""
        if self._waiting.pop(connection, self) is None:
            key = self._keys[connection]
            del self._waiting_of[key][connection]
            if not self._waiting_of[key]:
                del self._waiting_of[key]

    def is_signed_in(self, connection: Connection) -> None:
        """An account holds it, which is bounded by itself: it is no longer counted for its address."""
        if connection not in self._keys or len(self._signed_in) >= self._connections_max * 3 // 4:
            return
        is_waiting = connection in self._waiting
        self.is_busy(connection)
        self._uncount(connection)
        self._keys[connection] = ""
        self._counts[""] += 1
        self._signed_in.add(connection)
        if is_waiting:
            self.waits(connection)

    def leave(self, connection: Connection) -> None:
        """It is gone, or will be at once."""
        if connection not in self._keys:
            return
        self.is_busy(connection)
        self._uncount(connection)
        del self._keys[connection]
        self._signed_in.discard(connection)

    def _uncount(self, connection: Connection) -> None:
        key = self._keys[connection]
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key]
