"""Passwords are hashed on threads of their own, one hash at a time, for a bounded number of callers.

A hash takes tens of milliseconds and 19 MiB. On the event loop, or on the one thread of the database, many log-ins at
once would stop every page. There are two lanes, so unknown sources only wait for each other: one for them, and one for
known browsers (that have logged in before) and the holder of the set-up link.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.contrib.auth.hashers import make_password, verify_password

from dashboard.access.in_flight import InFlight

CALLERS_MAX = 8  # of one lane; the last one waits for seven hashes
CALLERS_OF_ONE_MAX = 2  # of one address or browser

Args = ParamSpec("Args")
Result = TypeVar("Result")


class HashingLane:
    """One thread and its callers."""

    def __init__(self, name: str) -> None:
        self.callers = InFlight(all_max=CALLERS_MAX, of_one_max=CALLERS_OF_ONE_MAX)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"passwords-{name}")

    async def verify(self, caller: str, password: str, encoded: str | None) -> tuple[bool, bool]:
        """Return whether the password is right, and whether its hash should be renewed. Raises TooManyAtOnce.

        encoded=None: there is no such account; the answer takes as long as for an existing one.
        """
        return await self._run(caller, _verify, password, encoded)

    async def hash(self, caller: str, password: str) -> str:
        """Return the password's hash for the database. Raises TooManyAtOnce."""
        return await self._run(caller, make_password, password)

    async def _run(self, caller: str, work: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Result:
        self.callers.enter(caller)
        future = self._thread.submit(work, *args, **kwargs)
        # Not when the caller is cancelled: the thread goes on with its hash, so the place is still taken.
        future.add_done_callback(lambda _: self.callers.leave(caller))
        return await asyncio.wrap_future(future)


unknown_sources = HashingLane("unknown")
known_browsers = HashingLane("known")


def _verify(password: str, encoded: str | None) -> tuple[bool, bool]:
    decoy = _decoy_hash()  # also for an existing account: the slow first call must not show which accounts exist
    is_right, is_outdated = verify_password(password, encoded or decoy)
    return (is_right, is_outdated) if encoded else (False, False)


@functools.cache
def _decoy_hash() -> str:
    return make_password(secrets.token_urlsafe())
