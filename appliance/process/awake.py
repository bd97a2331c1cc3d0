"""The clock of leases: it goes on while this process, or the machine, stands still, and nothing sets it."""

from __future__ import annotations

import time


def awake_s() -> float:
    """Seconds since an origin that is the same for all processes of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
