"""One try to log in with a password: bounded, booked, checked, and the session that follows.

A flood of attempts must be cheap, so the cheapest check comes first: the number of log-ins in progress
(`log_in_limit`), then the record of the attempt (one short transaction, `lockout`), then the hash (`hashing`). A
request beyond a limit gets "try again", and its password is not checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django.contrib.auth import alogin
from django.contrib.sessions.models import Session
from django.http import HttpRequest

from dashboard.access import hashing, lockout
from dashboard.access.in_flight import TooManyAtOnce
from dashboard.access.known_browsers import Source, source_of
from dashboard.access.log_in_limit import RETRY_AFTER_S
from dashboard.access.permissions import principal_of, start_session_clock
from dashboard.http.client_address import client_address
from dashboard.models.management import User


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a try. Without a user and without a wait, name and password don't match."""

    user: User | None = None
    tried: str = ""  # the name of the account whose password was wrong; empty when there is no such account
    wait_s: int = 0  # after so long the same may be asked again; nothing was tried
    is_locked: bool = False  # because of too many wrong tries, not because of a crowd


async def try_password(request: HttpRequest, username: str, password: str) -> Outcome:
    """The account, when it may log in from here with this password."""
    source = source_of(request, username)
    try:
        return await _booked_try(username, password, source)
    except TooManyAtOnce:
        return Outcome(wait_s=RETRY_AFTER_S)


async def start_session(request: HttpRequest, user: User) -> None:
    """Log the account in: a new session key, and when and from where it began. Sessions of the past are forgotten."""
    await Session.objects.filter(expire_date__lt=datetime.now(UTC)).adelete()
    await alogin(request, user, backend="django.contrib.auth.backends.ModelBackend")
    start_session_clock(request.session, client_address(request))


async def _booked_try(username: str, password: str, source: Source) -> Outcome:
    booking = await sync_to_async(lockout.book)(username, source)
    if booking.locked_until is not None:
        wait_s = (booking.locked_until - datetime.now(UTC)).total_seconds()
        return Outcome(wait_s=max(1, int(wait_s) + 1), is_locked=True)
    user = await User.objects.filter(username__iexact=username).afirst()
    lane = hashing.known_browsers if source.is_known else hashing.unknown_sources
    try:
        is_right, is_outdated = await lane.verify(source.key, password, user.password if user else None)
        new_hash = await lane.hash(source.key, password) if is_right and is_outdated else None
    except TooManyAtOnce:
        await sync_to_async(lockout.take_back)(booking)
        raise
    if user is None or not is_right or principal_of(user) is None:
        return Outcome(tried=user.username if user else "")
    await sync_to_async(lockout.forgive)(username, source)
    if new_hash is not None:
        user.password = new_hash
        await user.asave(update_fields=["password"])
    return Outcome(user)
