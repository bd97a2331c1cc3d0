"""What disturbs a soak. Each fault ends by itself; what it leaves behind is for the clients to overcome."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.soak.relay import Relay
from tests.soak.soak import Soak

SLOW_S = 0.03
PAUSE_S = 1.0


@dataclass
class Faults:
    """The faults of one soak: `await faults.inflict(name)` for each of `NAMES`."""

    soak: Soak
    before_namesrv: Relay
    before_broker: Relay

    async def inflict(self, name: str) -> None:
        """Disturb, and wait until all groups have caught up with what was acknowledged up to the fault's end."""
        began = time.monotonic()
        self.soak.faults[name] += 1
        await FAULTS[name](self)
        await self.soak.sent(20)
        await self.soak.caught_up()
        print(f"{time.monotonic() - began:.1f} {name}")

    async def member_killed(self, group: str) -> None:
        self.soak.kill_member(group)
        await self.soak.sent(20)
        self.soak.start_member(group)

    async def broker_killed(self) -> None:
        await asyncio.to_thread(self.soak.cluster.kill_broker)
        await asyncio.to_thread(self.soak.cluster.start_broker)

    async def broker_restarted(self) -> None:
        await asyncio.to_thread(self.soak.cluster.stop_broker)
        await asyncio.to_thread(self.soak.cluster.start_broker)

    async def broker_stopped(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        pid = self.soak.cluster.broker.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(PAUSE_S)  # how long nothing answers is the fault
        finally:
            os.kill(pid, signal.SIGCONT)

    async def broker_slow(self) -> None:
        self.before_broker.delay_s = SLOW_S
        try:
            await self.soak.sent(60)
        finally:
            self.before_broker.delay_s = 0.0

    async def connections_reset(self) -> None:
        self.before_broker.reset()
        self.before_namesrv.reset()

    async def namesrv_lost(self) -> None:
        """Clients go on with the routes that they know."""
        self.soak.cluster.namesrv.kill()
        await self.soak.sent(100)
        await asyncio.to_thread(self.soak.cluster.start_namesrv)


FAULTS: dict[str, Callable[[Faults], Awaitable[None]]] = {
    "ordered member killed": lambda faults: faults.member_killed("ordered"),
    "shared member killed": lambda faults: faults.member_killed("shared"),
    "connections reset": Faults.connections_reset,
    "broker slow": Faults.broker_slow,
    "broker stopped": Faults.broker_stopped,
    "broker killed": Faults.broker_killed,
    "broker restarted": Faults.broker_restarted,
    "name server lost": Faults.namesrv_lost,
}
