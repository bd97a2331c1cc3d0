"""The time as far as it can be believed: a wall clock that is suddenly ahead may be wrong, one that stays so is not.

For what can't be taken back. A step of less than a minute, and any step back, is believed at once; a step ahead once it
has lasted an hour (a machine that was suspended, or whose clock was behind, waits for as long). What the clock says at
the start is believed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

logger = logging.getLogger(__name__)

STEP_S_MAX = 60.0
BELIEVED_AFTER_S = 3600.0


class SteadyClock:
    """clock: seconds since the epoch. uptime: seconds that have passed, whatever the clock is set to."""

    def __init__(self, *, clock: Callable[[], float] = time.time, uptime: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uptime = uptime
        self._began = clock() - uptime()  # when the uptime was 0, as far as it is believed
        self._ahead_since: float | None = None  # of the uptime
        self.steps_back = 0  # of more than a minute

    def now(self) -> float:
        """Return seconds since the epoch."""
        uptime = self._uptime()
        began = self._clock() - uptime
        step_s = began - self._began
        if step_s <= STEP_S_MAX:
            self.steps_back += step_s < -STEP_S_MAX
            self._began, self._ahead_since = began, None
        elif self._ahead_since is None:
            self._ahead_since = uptime
            logger.warning(
                "the clock jumped ahead; not accepted yet",
                extra={"event": "clock_ahead", "ahead_s": int(step_s), "believed_in_s": int(BELIEVED_AFTER_S)},
            )
        elif uptime - self._ahead_since >= BELIEVED_AFTER_S:
            self._began, self._ahead_since = began, None
        return self._began + uptime
