"""What fails right now, for the log: a line when it begins, one a minute while it lasts, one when it is over.

A consumer of many queues meets a broker that is down once a second for each of them. Only the connection says so, for
the address; what fails for another reason (a refusal, for instance) has its own state, for each kind of work and
place. What is a repetition goes to the DEBUG level.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from gantrymq.errors import ConnectError, GantryError, RequestTimeout

logger: logging.Logger = logging.getLogger(__name__)

REMIND_S = 60.0
OPEN_MAX = 1024  # states; further failures are logged at the DEBUG level only
UNREACHABLE = "connect"


class _Outage:
    __slots__ = ("began", "members", "said_at")

    def __init__(self, now: float) -> None:
        self.began = self.said_at = now
        self.members: set[str] = set()


class Outages:
    """Of one client. clock: monotonic seconds."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[tuple[str, str], _Outage] = {}

    # -- connections --------------------------------------------------------------------------------------------------

    def unreachable(self, address: str, reason: str) -> None:
        """No connection to the address can be made, or nothing comes from it."""
        after_s = self._failed(UNREACHABLE, address, "")
        if after_s == 0:
            logger.warning(
                "unreachable (address=%s): %s",
                address,
                reason,
                extra={"event": "unreachable", "address": address, "reason": reason},
            )
        elif after_s is not None:
            logger.warning(
                "still unreachable after %s s (address=%s): %s",
                after_s,
                address,
                reason,
                extra={"event": "still_unreachable", "seconds": after_s, "address": address, "reason": reason},
            )

    def reachable(self, address: str) -> None:
        """Something came from the address."""
        lasted_s = self._ended(UNREACHABLE, address, "")
        if lasted_s is not None:
            logger.warning(
                "reachable again after %s s (address=%s)",
                lasted_s,
                address,
                extra={"event": "reachable_again", "seconds": lasted_s, "address": address},
            )

    # -- work that is repeated ----------------------------------------------------------------------------------------

    def failed(self, work: str, place: str, failure: GantryError, *, member: str = "") -> None:
        """Work that will be tried again failed at a place, such as a broker. member: one of several for which the same
        work is done there, such as a queue: the state ends when it works for all of them again."""
        after_s = None if self._is_of_connection(failure) else self._failed(work, place, member)
        if after_s:
            self._log_still_failing(work, place, after_s, failure)
            return
        level, event = (logging.WARNING, "work_failed") if after_s == 0 else (logging.DEBUG, "work_failed_again")
        facts = {"event": event, "work": work, "place": place, "member": member, "error": str(failure)}
        logger.log(level, "%s failed (place=%s, member=%s): %s", work, place, member, failure, extra=facts)

    def _log_still_failing(self, work: str, place: str, after_s: float, failure: GantryError) -> None:
        members = len(self._open[work, place].members)
        logger.warning(
            "%s still failing after %s s (place=%s, members=%s): %s",
            work,
            after_s,
            place,
            members,
            failure,
            extra={
                "event": "work_still_failing",
                "work": work,
                "seconds": after_s,
                "place": place,
                "members": members,
                "error": str(failure),
            },
        )

    def worked(self, work: str, place: str, *, member: str = "") -> None:
        """The work succeeded there."""
        if not self._open:
            return
        lasted_s = self._ended(work, place, member)
        if lasted_s is not None:
            logger.warning(
                "%s works again after %s s (place=%s)",
                work,
                lasted_s,
                place,
                extra={"event": "work_resumed", "work": work, "seconds": lasted_s, "place": place},
            )

    def given_up(self, work: str, place: str, *, member: str = "") -> None:
        """The work is not tried again: nothing to tell."""
        self._ended(work, place, member)

    def _is_of_connection(self, failure: GantryError) -> bool:
        """Whether the connection tells of it: it was refused or lost, or nothing came over it."""
        if isinstance(failure, ConnectError):
            return failure.address.rpartition(":")[2].isdecimal()  # otherwise no address was known
        return isinstance(failure, RequestTimeout) and (UNREACHABLE, failure.address) in self._open

    # -- states -------------------------------------------------------------------------------------------------------

    def _failed(self, work: str, place: str, member: str) -> float | None:
        """Seconds since the state began when a line is due, 0 when it begins; None when no line is due."""
        now, outage = self._clock(), self._open.get((work, place))
        if outage is None:
            if len(self._open) >= OPEN_MAX:
                return None
            outage = self._open[work, place] = _Outage(now)
            outage.members.add(member)
            return 0
        outage.members.add(member)
        if now - outage.said_at < REMIND_S:
            return None
        outage.said_at = now
        return round(now - outage.began, 1)

    def _ended(self, work: str, place: str, member: str) -> float | None:
        """Seconds that the state lasted, None when it was none or lasts for other members."""
        outage = self._open.get((work, place))
        if outage is None:
            return None
        outage.members.discard(member)
        if outage.members:
            return None
        del self._open[work, place]
        return round(self._clock() - outage.began, 1)
