"""Guessing passwords is made slow: five wrong tries within five minutes close the door for ten.

Counted per account name and address together, so that a stranger elsewhere can't lock a person out; and per address
and per account name alone with higher limits, so that neither many names nor many addresses help.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.models import LoginFailure

WINDOW = timedelta(minutes=5)
LOCKED_FOR = timedelta(minutes=10)
PAIR_FAILURES_MAX = 5
ADDRESS_FAILURES_MAX = 30
NAME_FAILURES_MAX = 100


def name_key(username: str) -> str:
    return username.strip().lower()[:64]


async def locked_until(username: str, address: str, now: datetime | None = None) -> datetime | None:
    """When this name may be tried again from this address; None means now."""
    now = now or timezone.now()
    recent = LoginFailure.objects.filter(at__gt=now - WINDOW - LOCKED_FOR)
    key = name_key(username)
    ends = [
        await _end_of_lock(recent.filter(username_key=key, address=address), PAIR_FAILURES_MAX),
        await _end_of_lock(recent.filter(address=address), ADDRESS_FAILURES_MAX),
        await _end_of_lock(recent.filter(username_key=key), NAME_FAILURES_MAX),
    ]
    return max((end for end in ends if end is not None and end > now), default=None)


async def note_failure(username: str, address: str, now: datetime | None = None) -> None:
    """Count one wrong try, and forget what no longer matters."""
    now = now or timezone.now()
    await LoginFailure.objects.filter(at__lt=now - WINDOW - LOCKED_FOR).adelete()
    await LoginFailure.objects.acreate(username_key=name_key(username), address=address[:64], at=now)


async def forgive(username: str, address: str) -> None:
    """A right password clears the name's count from this address."""
    await LoginFailure.objects.filter(username_key=name_key(username), address=address).adelete()


async def _end_of_lock(failures: QuerySet[LoginFailure], allowed: int) -> datetime | None:
    newest_first = [at async for at in failures.order_by("-at").values_list("at", flat=True)[: allowed * 3]]
    return end_of_lock(newest_first, allowed)


def end_of_lock(newest_first: Sequence[datetime], allowed: int) -> datetime | None:
    """The end of the lock that the newest `allowed` failures within one window started, if any did."""
    for start in range(len(newest_first) - allowed + 1):
        if newest_first[start] - newest_first[start + allowed - 1] <= WINDOW:
            return newest_first[start] + LOCKED_FOR
    return None
