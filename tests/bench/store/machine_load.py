"""What the machine took from a process meanwhile, as far as the kernel counts it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """Since the machine's start."""

    stolen_s: float  # by the hypervisor, all cores together
    handed_back: int  # times that free memory was given back to the hypervisor (virtio balloon)

    def since(self, before: Taken) -> Taken:
        return Taken(self.stolen_s - before.stolen_s, self.handed_back - before.handed_back)


def taken() -> Taken:
    """Return what was taken up to now; zeros where the kernel doesn't say."""
    try:
        ticks = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
        lines = [line.split() for line in Path("/proc/interrupts").read_text().splitlines() if "reporting_vq" in line]
    except (OSError, IndexError, ValueError):
        return Taken(0.0, 0)
    return Taken(ticks / _TICKS_A_SECOND, sum(int(field) for line in lines for field in line[1:] if field.isdecimal()))


def settle(quiet_s: float, patience_s: float) -> None:
    """Wait until no memory was handed back to the hypervisor for a while: files that were just deleted are.

    Where it happens, the processes that run meanwhile are kept by the hypervisor for many milliseconds now and then.
    """
    deadline = time.monotonic() + patience_s
    known, since = taken().handed_back, time.monotonic()
    while known and time.monotonic() < min(since + quiet_s, deadline):
        time.sleep(min(quiet_s, 0.2))
        if (now := taken().handed_back) != known:
            known, since = now, time.monotonic()
