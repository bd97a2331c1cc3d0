"""Times by a cron line, on the clocks of a zone.

As Debian's cron does where clocks change: a time that is left out runs just after, one that comes twice runs once; what
runs each hour goes on doing so.
"""

from __future__ import annotations

import itertools
import zoneinfo
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError
from django.utils.translation import gettext

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
        raise CronRefused(gettext("%(line)s: this time never occurs.") % {"line": repr(line)}) from None


def check(line: str, zone: str, after: datetime) -> None:
    """Raises CronRefused, in a sentence, unless the line may be a schedule."""
    times = _times(line, zone, after)
    moments = [moment.astimezone(UTC) for moment in itertools.islice(times, LOOKED_AT)]
    if not moments:
        raise CronRefused(gettext("%(line)s: this time never occurs.") % {"line": repr(line)})
    for earlier, later in itertools.pairwise(moments):
        if (later - earlier).total_seconds() < MINUTES_MIN * 60:
            raise CronRefused(
                gettext("%(line)s runs more often than every %(minutes)s minutes.")
                % {"line": repr(line), "minutes": MINUTES_MIN}
            )


def _times(line: str, zone: str, after: datetime) -> CronSim:
    try:
        local = after.astimezone(zoneinfo.ZoneInfo(zone))
        return CronSim(line, local)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as wrong:
        raise CronRefused(
            gettext("%(zone)s is not a time zone; write a name such as Europe/Berlin.") % {"zone": repr(zone)}
        ) from wrong
    except CronSimError as wrong:
        raise CronRefused(
            gettext(
                "%(line)s is not a cron line (%(wrong)s); write minute, hour, day of the month, "
                "month and day of the week, such as: 0 6 * * mon-fri"
            )
            % {"line": repr(line), "wrong": wrong}
        ) from wrong
