"""Slows down password guessing, without locking an account for its owner.

Wrong passwords within five minutes, and what they lock for ten:

    of one account and one source             5     the account, for this source
    of one address                            30    every account, for this address
    of one account from unknown browsers      100   nothing; meanwhile an address has 2 attempts instead of 5

A source is an address, or a browser that has logged in to the account before (`known_browsers`). Such a browser has
five attempts of its own, and the other two rules don't apply to it. So users can't be locked out by attempts from
elsewhere, and an address without wrong passwords always has attempts.

An attempt is recorded as a failure before its password is checked, and removed if it was right, so simultaneous
attempts are counted, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from dashboard.access.known_browsers import Source, account_key, counted_source
from dashboard.models.management import BookingTurn, LoginFailure

WINDOW = timedelta(minutes=5)
LOCKED_FOR = timedelta(minutes=10)
SOURCE_FAILURES_MAX = 5
ADDRESS_FAILURES_MAX = 30
ACCOUNT_FAILURES_MAX = 100
PRESSED_SOURCE_FAILURES_MAX = 2
LOCKS_SHOWN_MAX = 1000


@dataclass(frozen=True, slots=True)
class Booking:
    """The result of `book`: a recorded failure, or the end of the lock."""

    failure_id: int | None = None
    locked_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Lock:
    """An account that may not be tried from one source for the moment."""

    account: str
    source: str
    until: datetime


def book(username: str, source: Source, now: datetime | None = None) -> Booking:
    """Count a try as a failure, unless it may not be made. Blocking."""
    now = now or timezone.now()
    account = account_key(username)
    with transaction.atomic():  # SQLite: BEGIN IMMEDIATE, so bookings queue up here
        BookingTurn.take()  # and here on databases that lock rows
        LoginFailure.objects.filter(at__lt=now - WINDOW - LOCKED_FOR).delete()
        until = _locked_until(account, source, now)
        if until is not None:
            return Booking(locked_until=until)
        failure = LoginFailure.objects.create(
            account_key=account, source=source.key, is_known_browser=source.is_known, at=now
        )
    return Booking(failure_id=failure.pk)


def take_back(booking: Booking) -> None:
    """The try was not made after all. Blocking."""
    if booking.failure_id is not None:
        LoginFailure.objects.filter(pk=booking.failure_id).delete()


def forgive(username: str, source: Source) -> None:
    """A right password clears the account's count for this source, with the booking of this try. Blocking."""
    LoginFailure.objects.filter(account_key=account_key(username), source=source.key).delete()


def forget(*, account: str = "", address: str = "") -> int:
    """Forget wrong tries: at one account, from one address, or all. Returns how many there were. Blocking."""
    tries = LoginFailure.objects.all()
    if account:
        tries = tries.filter(account_key=account_key(account))
    if address:
        tries = tries.filter(source=counted_source(address).key)
    return tries.delete()[0]


def locks(now: datetime | None = None) -> list[Lock]:
    """What is closed at the moment, to whom. Blocking."""
    now = now or timezone.now()
    pairs = LoginFailure.objects.values_list("account_key", "source", "is_known_browser").order_by().distinct()
    found = []
    for account, key, is_known in pairs[:LOCKS_SHOWN_MAX]:
        until = _locked_until(account, Source(key, is_known), now)
        if until is not None:
            found.append(Lock(account, "a known browser" if is_known else key, until))
    return found


def _locked_until(account: str, source: Source, now: datetime) -> datetime | None:
    recent = LoginFailure.objects.filter(at__gt=now - WINDOW - LOCKED_FOR)
    allowed = SOURCE_FAILURES_MAX
    if not source.is_known and _is_pressed(account, now):
        allowed = PRESSED_SOURCE_FAILURES_MAX
    ends = [_end_of_lock(recent.filter(account_key=account, source=source.key), allowed)]
    if not source.is_known:
        ends.append(_end_of_lock(recent.filter(source=source.key), ADDRESS_FAILURES_MAX))
    return max((end for end in ends if end is not None and end > now), default=None)


def _is_pressed(account: str, now: datetime) -> bool:
    """Whether many wrong passwords for this account have come from unknown browsers."""
    tries = LoginFailure.objects.filter(account_key=account, is_known_browser=False, at__gt=now - WINDOW)
    return len(tries.values_list("pk")[:ACCOUNT_FAILURES_MAX]) == ACCOUNT_FAILURES_MAX


def _end_of_lock(failures: QuerySet[LoginFailure], allowed: int) -> datetime | None:
    newest_first = failures.order_by("-at").values_list("at", flat=True)[: allowed * 3]
    return end_of_lock(list(newest_first), allowed)


def end_of_lock(newest_first: Sequence[datetime], allowed: int) -> datetime | None:
    """The end of the lock that the newest `allowed` failures within one window started, if any did."""
    for start in range(len(newest_first) - allowed + 1):
        if newest_first[start] - newest_first[start + allowed - 1] <= WINDOW:
            return newest_first[start] + LOCKED_FOR
    return None
