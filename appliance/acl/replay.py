"""Replay protection: the stamp of a signed request is valid once, on one connection, for a limited time.

A stamp (gantrymq/remoting/signature.py) contains a time, the client's random id of the connection, a number that only
grows on that connection, and the request code. TCP keeps the order, so it is enough to remember the last number of each
connection id, and the TCP connection on which it came. An id is forgotten when its last stamp is older than the window:
then all of its stamps are too old. They stay refused when the clock is set back: the first stamp of an id has to be
newer than all that were forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable

WINDOW_MS = 300_000
IDS_PER_ACCOUNT_MAX = 4096  # connections of one account within the window
_AT_MOST_CHARS = 80


class StampRefused(Exception):
    """A stamp is not accepted; the text says why."""


class _Seen:
    __slots__ = ("connection", "number", "time_ms")

    def __init__(self, connection: object, number: int, time_ms: int) -> None:
        self.connection = connection  # the number of the TCP connection
        self.number = number
        self.time_ms = time_ms


class ReplayGuard:
    """Remembers stamps. Call `check` only after the signature was right: forged requests could fill the table."""

    def __init__(self, window_ms: int = WINDOW_MS, *, clock: Callable[[], float] = time.time) -> None:
        self._window_ms = window_ms
        self._clock = clock
        self._seen: dict[str, dict[str, _Seen]] = {}
        self._forgotten_ms = 0  # the newest stamp that was forgotten

    def check(self, access_key: str, stamp: str, code: int, connection: int) -> None:
        """Accept the stamp, or raise StampRefused. `connection` is a unique number of the connection."""
        if len(stamp) > _AT_MOST_CHARS:
            raise StampRefused("malformed stamp")
        try:
            time_text, client_id, number_text, code_text = stamp.split(".")
            time_ms, number, stamped_code = int(time_text), int(number_text), int(code_text)
        except ValueError:
            raise StampRefused("malformed stamp") from None
        now_ms = int(self._clock() * 1000)
        if abs(now_ms - time_ms) > self._window_ms:
            raise StampRefused(f"stamp is {(now_ms - time_ms) // 1000} s old; are the clocks right?")
        if stamped_code != code:
            raise StampRefused("stamp belongs to another request code")
        seen = self._seen.get(access_key)
        if seen is None:
            self._forget_accounts(now_ms)
            seen = self._seen[access_key] = {}
        known = seen.get(client_id)
        if known is None:
            if time_ms <= self._forgotten_ms:
                raise StampRefused("stamp is older than some that were forgotten; was the clock set back?")
            if len(seen) >= IDS_PER_ACCOUNT_MAX:
                self._forget_old(seen, now_ms)
            seen[client_id] = _Seen(connection, number, time_ms)
            return
        if known.connection != connection:
            raise StampRefused("stamp of another connection")
        if number <= known.number:
            raise StampRefused("stamp was used before")
        known.number = number
        if time_ms > known.time_ms:
            known.time_ms = time_ms

    def __len__(self) -> int:
        """Of how many accounts stamps are remembered."""
        return len(self._seen)

    def _forget_accounts(self, now_ms: int) -> None:
        """Forget accounts, deleted ones among them, whose stamps are all too old: none of them can come again."""
        for access_key, seen in list(self._seen.items()):
            newest_ms = max((item.time_ms for item in seen.values()), default=0)
            if now_ms - newest_ms > self._window_ms:
                self._forgotten_ms = max(self._forgotten_ms, newest_ms)
                del self._seen[access_key]

    def _forget_old(self, seen: dict[str, _Seen], now_ms: int) -> None:
        old = [key for key, item in seen.items() if now_ms - item.time_ms > self._window_ms]
        for key in old:
            self._forgotten_ms = max(self._forgotten_ms, seen.pop(key).time_ms)
        if len(seen) >= IDS_PER_ACCOUNT_MAX:
            raise StampRefused(f"more than {IDS_PER_ACCOUNT_MAX} connections of one account")
