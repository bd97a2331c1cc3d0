"""One broker through its roles: opens a controller, and when it is to take a turn, closes it and opens the next one.

Whatever a role needs is read from the folder when it opens, as at any start: a promoted slave loads the tables that it
has kept, delays and transactions included, and goes on. What was decided is on disk before the next one opens
(standing.py), so a crash in between changes nothing.

A master that starts asks the name servers first whether a later epoch of its log has begun elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from appliance.broker.controller import BrokerController
from appliance.broker.epochs.members import Members
from appliance.broker.epochs.standing import GivenRole, StandingFile, role_text, with_role
from appliance.broker.epochs.turns import Cut, Demotion, Promotion, Turn
from appliance.broker.replication.copy_mark import CopyMark
from appliance.broker.replication.in_sync_file import InSyncRecord
from appliance.broker.replication.master.proof import early_renewals
from appliance.errors import StartError
from appliance.process.json_file import StateFileError
from appliance.process.process_identity import new_session
from appliance.register.etcd import EtcdError
from appliance.register.register import RESTORED
from appliance.register.renewals import Renewals
from appliance.settings.properties_file import PropertiesFile
from appliance.settings.roles import BrokerConfig
from store.base.config import MessageStoreConfig

logger = logging.getLogger(__name__)

ROLE_FIELDS = ("broker_role", "broker_id", "slaves_enable")


class BrokerLife:
    """Serves while its block runs. controller: the one that is open, or opens."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: MessageStoreConfig,
        *,
        file: PropertiesFile | None = None,
        ignored: Sequence[str] = (),
    ) -> None:
        self._settings_say = {name: getattr(config, name) for name in ROLE_FIELDS}
        self._file = file
        self._ignored = ignored
        self._stop = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._mark = CopyMark.of(store_config.root)
        self._session = new_session()
        self._early: Renewals | None = None  # of an epoch that was taken, until it is a master's
        self.controller = self._controller(config, store_config)

    @property
    def port(self) -> int:
        return self.controller.port

    async def __aenter__(self) -> Self:
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._group.__aenter__()
        self._group.create_task(self._run(opened), name="broker")
        try:
            await opened
        except BaseException as exc:
            with contextlib.suppress(BaseExceptionGroup):
                await self._group.__aexit__(type(exc), exc, exc.__traceback__)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._stop.set()
        await self._group.__aexit__(kind, value, traceback)
        return None

    # -- one role after the other -------------------------------------------------------------------------------------

    async def _run(self, opened: asyncio.Future[None]) -> None:
        """Open, wait, close, all in this task, until `stop` is set. The first opening's error goes to `opened`."""
        try:
            await self._follow_successor()
            while not self._stop.is_set():
                async with self.controller as controller:
                    if not opened.done():
                        opened.set_result(None)
                    turn = await self._turn_or_stop(controller)
                    if turn is None and controller.master_role is not None:
                        await controller.master_role.release()
                    if isinstance(turn, Promotion) and turn.epoch_id and controller.config.automatic_failover:
                        group = controller.member.membership.group
                        given = turn.above + 1, turn.epoch_id
                        self._early = early_renewals(controller.config, self._session, *given, group)
                if turn is not None:
                    await self._take(turn)
        except BaseException as exc:
            if opened.done():
                raise
            opened.set_exception(exc)
        finally:
            proof = self.controller.slaves.proof  # its renewals have begun before the broker was open
            for renewals in (self._early, proof.renewals if proof is not None else None):
                if renewals is not None:
                    await asyncio.to_thread(renewals.stop)

    async def _turn_or_stop(self, controller: BrokerController) -> Turn | None:
        async with asyncio.TaskGroup() as group:
            waits = [group.create_task(controller.turns.wait()), group.create_task(self._stop.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in waits:
                task.cancel()
        return controller.turns.turn

    async def _take(self, turn: Turn) -> None:
        """Put the turn on record, and have the next controller ready."""
        closed = self.controller
        logger.warning("broker starts a turn as master", extra={"event": "broker_turn", "turn": repr(turn)})
        free_id = await Members(closed.config).free_id(turn.master) if isinstance(turn, Demotion) else 0
        try:
            await asyncio.to_thread(self._put_on_record, closed, turn, free_id)
        except (StateFileError, OSError) as exc:
            raise StartError(f"the broker's new role can't be put on record: {exc}") from exc
        config = dataclasses.replace(closed.config, **self._settings_say)
        self.controller = self._controller(config, closed.store_config, port=closed.port)
        self.controller.turn_before = turn
        self.controller.turns.go_on_from(closed.turns)
        await self._go_on_renewing()
        if not closed.offsets.may_be_old:  # in memory, that is: the file was written when it closed
            self.controller.offsets.are_new()

    async def _go_on_renewing(self) -> None:
        """As the master that opens next; not when another epoch has overtaken it."""
        if self._early is None:
            return
        if (proof := self.controller.slaves.proof) is not None:
            proof.begin(self._early)
        else:
            await asyncio.to_thread(self._early.stop)
        self._early = None

    def _put_on_record(self, closed: BrokerController, turn: Turn, free_id: int) -> None:
        file = closed.standing
        epochs = file.standing.epochs
        if isinstance(turn, Cut):
            file.change(cut_to=turn.end)
        elif isinstance(turn, Promotion) and epochs.is_overtaken(turn.above + 1, turn.epoch_id):
            facts = {"event": "promotion_overtaken", "epoch": turn.above + 1, "later_epoch": epochs.highest}
            logger.warning("slave stays one: a later epoch than its own has begun", extra=facts)
        elif isinstance(turn, Promotion):
            epochs = epochs.begun(closed.store.max_physical_offset, turn.above, turn.epoch_id)
            role, told = self._given(turn.broker_role, 0), {"untold": turn.untold, "members": turn.members}
            slave_id = closed.config.broker_id or file.standing.slave_id  # a master may begin a further epoch
            file.change(epochs=epochs, role=role, slave_id=slave_id, **told, cut_to=None, rival=None, handed_to=None)
            if turn.in_sync:
                was, end = closed.in_sync_file.record, closed.store.max_physical_offset
                confirmed = max(was.confirmed_of(end), 0)
                record = InSyncRecord(epochs.current, turn.in_sync, confirmed, confirmed, leave_s=was.leave_s)
                closed.in_sync_file.keep(record)
            self._mark.clear()
        else:
            epochs = epochs.heard(turn.epoch, turn.id)
            role, told = self._given("SLAVE", free_id), {"untold": (), "members": ()}
            file.change(epochs=epochs, role=role, **told, rival=None, handed_to=None)

    def _given(self, broker_role: str, broker_id: int) -> GivenRole | None:
        """The role to put on record; None when the settings say the same."""
        instead = f"{self._settings_say['broker_role']} {self._settings_say['broker_id']}"
        return None if instead == f"{broker_role} {broker_id}" else GivenRole(broker_role, broker_id, instead)

    def _controller(self, config: BrokerConfig, store_config: MessageStoreConfig, *, port: int = 0) -> BrokerController:
        """A controller with the role that the store was given, if it was. Blocks for a small file. StartError."""
        role = StandingFile(store_config.root).load().role
        config = with_role(config, role)
        if role is not None and role.applies_to(dataclasses.replace(config, **self._settings_say)):
            logger.warning(
                "assigned role differs from the settings",
                extra={"event": "role_given", "role": role_text(config), "instead": role.instead},
            )
            if not config.is_slave:  # a crash may have left the mark of the copy that this store was
                self._mark.clear()
        return BrokerController(
            config, store_config, file=self._file, ignored=self._ignored, port=port, session=self._session
        )

    async def _follow_successor(self) -> None:
        """A master whose successor is there becomes its slave before it serves anything."""
        config, standing = self.controller.config, StandingFile(self.controller.store_config.root).load()
        if not config.has_slave_port or not standing.epochs.is_current:
            return
        current = standing.epochs.current
        successor = await Members(config).successor(current) or await self._successor_on_record(current)
        if successor is not None:
            self.controller.standing.load()
            await self._take(successor)

    async def _successor_on_record(self, epoch: int) -> Demotion | None:
        """Who has a later epoch in etcd. Without an answer that counts the master opens, and takes no messages until it
        has one."""
        register = self.controller.register
        if register is None:
            return None
        register.group = (await asyncio.to_thread(self.controller.member.read)).group
        try:
            view = await register.view()
            term, why = view.term, RESTORED if view.is_restored else ""
        except EtcdError as exc:
            term, why = None, str(exc)
        if why:
            facts = {"event": "successor_not_told", "why": why}
            logger.warning("etcd does not tell whether a later epoch has begun", extra=facts)
        return None if why or term is None or term.epoch <= epoch else Demotion(term.epoch, term.owner, term.id)
