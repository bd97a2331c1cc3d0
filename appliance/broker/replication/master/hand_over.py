"""A master hands over to a slave: never do both take messages, however long either stands still or is away.

The slave asks for it as the last thing before it begins its epoch. The master puts on record that it has handed over,
then answers; from then on it takes nothing, and neither time nor a restart changes that. It ends in one of three ways:

    the slave has begun its epoch                       it tells this master, which follows it
    the slave says that it has not, and will not        this master goes on: the slave has to ask anew
    the slave is lost                                   an administrator decides, by `gantry admin settle`

No answer is no reason to go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from appliance.broker.epochs.members import Members
from appliance.broker.epochs.standing import HandedTo, StandingFile
from appliance.broker.epochs.turns import Turns
from appliance.broker.replication.master.holding import Holding
from appliance.broker.replication.master.slaves import SlaveService
from appliance.errors import BrokerError
from appliance.process.json_file import StateFileError
from gantrymq.remoting.codes import ResponseCode
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

LOOK_S = 0.2


class HandOver:
    """A service: once it has handed over, it asks the slave what became of it."""

    def __init__(
        self,
        store: MessageStore,
        slaves: SlaveService,
        turns: Turns,
        holding: Holding,
        standing: StandingFile,
        members: Members,
    ) -> None:
        self._store = store
        self._slaves = slaves
        self._turns = turns
        self._holding = holding
        self._standing = standing
        self._members = members
        self._lock = asyncio.Lock()
        self._given: HandedTo | None = None  # as soon as it may be on record, until it is surely not
        self._times = 0  # that it was asked for: an answer of the slave counts if it was not asked again meanwhile
        self._is_given = asyncio.Event()

    def resume(self) -> None:
        """What this master's record says when it opens."""
        if (given := self._standing.standing.handed_to) is not None:
            self._enter(given)

    async def give(self, to: HandedTo, end: int) -> None:
        """Hand over to a slave whose log ends at `end`. BrokerError when not, or when it can't be put on record."""
        async with self._lock:
            if why := self._why_not(to, end):
                raise BrokerError(ResponseCode.SYSTEM_ERROR, why)
            self._enter(to)
            try:
                await asyncio.to_thread(self._standing.change, handed_to=to)
            except StateFileError as exc:  # it may be on disk, though: the slave is asked
                raise BrokerError(ResponseCode.SYSTEM_ERROR, f"it can't be put on record: {exc}") from exc
        facts = {"event": "handed_over", "slave": to.address, "epoch": to.epoch}
        logger.warning("master gave up its role", extra=facts)

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self._is_given.wait()
            to, times = self._given, self._times
            assert to is not None
            told = await self._members.figures(to.address)
            if has_not_begun(told, to, self._standing.standing.epochs.current_id):
                await self._take_back(times)
            await asyncio.sleep(LOOK_S)

    def _enter(self, to: HandedTo) -> None:
        self._times += 1
        self._given = to
        self._holding.pin(True)
        self._is_given.set()

    async def _take_back(self, times: int) -> None:
        async with self._lock:
            if times != self._times or self._turns.turn is not None:
                return
            try:
                await asyncio.to_thread(self._standing.change, handed_to=None)
            except StateFileError as exc:  # tried again
                logger.error("not recorded", extra={"event": "state_file_not_written", "why": str(exc)})
                return
            self._given = None
            self._is_given.clear()
            self._holding.pin(False)
        logger.warning("slave did not become the master", extra={"event": "hand_over_taken_back"})

    def _why_not(self, to: HandedTo, end: int) -> str:
        epochs = self._standing.standing.epochs
        if self._turns.turn is not None or self._slaves.fenced_by or to.epoch <= epochs.highest:
            return f"epoch {epochs.highest} is known here, and epoch {to.epoch} was asked for"
        if self._given is not None and self._given.address != to.address:
            return f"it has given up its role to {self._given.address}, which has not answered"
        if not self._holding.is_on or end != self._store.max_physical_offset:
            return "it does not hold back messages: use a switchover, which makes it do so first"
        has_all = any(each.broker == to.address and each.acknowledged >= end for each in self._slaves.slaves)
        return "" if has_all or self._given is not None else f"{to.address} has not said that it has all"


def has_not_begun(told: Mapping[str, str], to: HandedTo, own_epoch_id: str) -> bool:
    """Whether a member's figures say that it has not begun the epoch, and that no request of before will make it.

    It is the slave if it is of this log: another broker may have its address by now.
    """
    is_slave = told.get("brokerRole") == "SLAVE" and told.get("epochId") == own_epoch_id
    return is_slave and told.get("mayBeginEpoch") == "false" and int(told.get("epochHighest", "0")) < to.epoch
