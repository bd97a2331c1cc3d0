"""What systemd is told of the appliance (sd_notify): that it serves, that it stops, and now and then that it lives.

Where no service manager listens, nothing is said. The variables are taken out of the environment: what the processes
below the guardian would say is not meant for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import MutableMapping

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"
TOLD_WITHIN_S = 1.0


class ServiceManager:
    """`tell` it what happened; `beat` for as long as the process lives."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        self._address = environment.pop("NOTIFY_SOCKET", "")
        period_us, pid = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
        is_meant = not pid or pid == str(os.getpid())
        self._period_s = int(period_us) / 1e6 if period_us.isdigit() and is_meant else 0.0

    def tell(self, text: str) -> None:
        """One datagram. A manager that does not read holds the appliance up for a second, no longer."""
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as it:
            it.settimeout(TOLD_WITHIN_S)
            it.sendto(text.encode(), address)

    async def beat(self) -> None:
        """Say twice in each period that the loop runs, until cancelled."""
        while self._address and self._period_s:
            self.tell(ALIVE)
            await asyncio.sleep(self._period_s / 2)  # the manager asks for no answer, it only counts the time
