"""Passwords are hashed on threads of their own, one hash at a time, for a bounded number of callers.

A hash costs tens of milliseconds and 19 MiB, whoever asks for it. On the loop, or on the one thread of the database, a
crowd of log-ins would stop every page. There are two lanes: strangers wait for strangers only, and what belongs to
somebody we know (a browser that has logged in before, the holder of the set-up link) waits in the other.
"""

from __future__ import annotations

import asyncio
import functools
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.contrib.auth.hashers import make_password, verify_password

from dashboard.accounts.in_flight import InFlight

CALLERS_MAX = 8  # of one lane; the last one waits for seven hashes
CALLERS_OF_ONE_MAX = 2  # of one address or browser

Args = ParamSpec("Args")
Result = TypeVar("Result")


class HashingLane:
    """One thread, and those who wait for it."""

    def __init__(self, name: str) -> None:
        self._callers = InFlight(all_max=CALLERS_MAX, of_one_max=CALLERS_OF_ONE_MAX)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"passwords-{name}")

    async def verify(self, caller: str, password: str, encoded: str | None) -> tuple[bool, bool]:
        """Whether the password is right, and whether its hash should be renewed. Raises TooManyAtOnce.

        encoded=None: there is no such account, and the answer takes as long as if there were.
        """
        return await self._run(caller, _verify, password, encoded)

    async def hash(self, caller: str, password: str) -> str:
        """The password as the database keeps it. Raises TooManyAtOnce."""
        return await self._run(caller, make_password, password)

    async def _run(self, caller: str, work: Callable[Args, Result], *args: Args.args, **kwargs: Args.kwargs) -> Result:
        self._callers.enter(caller)
        future = self._thread.submit(work, *args, **kwargs)
        future.add_done_callback(lambda _: self._callers.leave(caller))  # not before: the thread is busy until then
        return await asyncio.wrap_future(future)


strangers = HashingLane("strangers")
known = HashingLane("known")


def _verify(password: str, encoded: str | None) -> tuple[bool, bool]:
    nobody = _hash_of_nobody()  # made for everybody's first try alike
    is_right, is_outdated = verify_password(password, encoded or nobody)
    return (is_right, is_outdated) if encoded else (False, False)


@functools.cache
def _hash_of_nobody() -> str:
    return make_password(secrets.token_urlsafe())
