"""Times by a cron line, on the clocks of a zone.

As Debian's cron does where clocks change: a time that is left out runs just after, one that comes twice runs once; what
runs each hour goes on doing so.
"""

from __future__ import annotations

import itertools
import zoneinfo
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from gantrymq.errors import GantryError

CRON_CHARS_MAX = 64
MINUTES_MIN = 15  # between two runs: each takes some seconds of all cores
LOOKED_AT = 50  # times of a line, to find its shortest distance


class CronRefused(GantryError):
    """A line that is no cron line, names no time that ever comes, or too many."""


def following(line: str, zone: str, after: datetime) -> datetime:
    """The next time of the line after a moment, in UTC. Raises CronRefused."""
    try:
        return next(_times(line, zone, after)).astimezone(UTC)
    except StopIteration:
        raise CronRefused(f"{line!r}: no such time comes.") from None


def check(line: str, zone: str, after: datetime) -> None:
    """Raises CronRefused, in a sentence, unless the line may be a schedule."""
    times = _times(line, zone, after)
    moments = [moment.astimezone(UTC) for moment in itertools.islice(times, LOOKED_AT)]
    if not moments:
        raise CronRefused(f"{line!r}: no such time comes.")
    for earlier, later in itertools.pairwise(moments):
        if (later - earlier).total_seconds() < MINUTES_MIN * 60:
            raise CronRefused(f"{line!r} comes more often than each {MINUTES_MIN} minutes.")


def _times(line: str, zone: str, after: datetime) -> CronSim:
    try:
        local = after.astimezone(zoneinfo.ZoneInfo(zone))
        return CronSim(line, local)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as wrong:
        raise CronRefused(f"{zone!r} is no time zone; write a name such as Europe/Berlin.") from wrong
    except CronSimError as wrong:
        raise CronRefused(
            f"{line!r} is no cron line ({wrong}); write minute, hour, day of the month, month and day of the week, "
            "such as: 0 6 * * mon-fri"
        ) from wrong
