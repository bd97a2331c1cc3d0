"""A promoted master tells all others that a new epoch has begun, for as long as one may come back unknowing: the master
of before at its port for slaves, every member by a request.

At the name servers the last registration counts, of either broker: while the other may still register, and for a minute
after it was told, this broker registers again every second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from appliance.broker.epochs.members import Members
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.replication.ha_frames import FrameError
from appliance.broker.replication.master.slaves import SlaveService
from appliance.broker.replication.slave_guard import greet
from appliance.process.json_file import StateFileError
from gantrymq.remoting.client import split_address
from gantrymq.timeouts import timeout

logger = logging.getLogger(__name__)

RETRY_S_MIN, RETRY_S_MAX = 0.5, 2.0
REGISTER_S, REGISTRATIONS = 1.0, 60
ANSWER_TIMEOUT_S = 5.0


class OldMasters:
    """A service: it ends its work once each of them has answered. register: has the name servers told again."""

    def __init__(
        self, slaves: SlaveService, standing: StandingFile, members: Members, register: Callable[[], None]
    ) -> None:
        self._register = register
        self._members = members
        self._slaves = slaves
        self._standing = standing

    async def run(self) -> None:
        if self._standing.standing.epochs.current > 1:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tell_all(), name="old masters")
                tasks.create_task(self._register_again(), name="registrations of a new master")
        await asyncio.Event().wait()

    async def _register_again(self) -> None:
        left = REGISTRATIONS
        while left:
            await asyncio.sleep(REGISTER_S)
            self._register()
            left = REGISTRATIONS if self._standing.standing.untold else left - 1

    async def _tell_all(self) -> None:
        retry_s = RETRY_S_MIN
        while self._standing.standing.untold or self._standing.standing.members:
            for address in self._standing.standing.untold:
                if await self._tell(address):
                    await self._note_told(address)
            for address in self._standing.standing.members:
                if await self._members.tell(
                    address, self._standing.standing.epochs, self._slaves.greeter.broker_address
                ):
                    await self._note_told(address)
            await asyncio.sleep(retry_s)
            retry_s = min(retry_s * 2, RETRY_S_MAX)

    async def _tell(self, address: str) -> bool:
        """Greet it with this epoch; say if its answer shows that it has heard."""
        host, port = split_address(address)
        try:
            async with timeout(ANSWER_TIMEOUT_S):
                guard = self._slaves.guard
                reader, writer = await asyncio.open_connection(host, port, ssl=guard.outgoing_tls())
                try:
                    theirs = await greet(reader, writer.write, self._slaves.greeter.hello(), guard.credentials)
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
        except (TimeoutError, OSError, EOFError, FrameError):
            return False
        return theirs.epochs.highest >= self._standing.standing.epochs.highest

    async def _note_told(self, address: str) -> None:
        logger.info(
            "former master knows that its epoch is over", extra={"event": "old_master_told", "address": address}
        )
        standing = self._standing.standing
        untold = tuple(each for each in standing.untold if each != address)
        members = tuple(each for each in standing.members if each != address)
        try:
            await asyncio.to_thread(self._standing.change, untold=untold, members=members)
        except StateFileError as exc:  # then it is told once more
            logger.warning("not recorded", extra={"event": "state_file_not_written", "why": str(exc)})
