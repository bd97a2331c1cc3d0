"""A master's in-sync set in the register: who leaves it, leaves it there first.

Once this master is gone, a reader of the set must find in it only members that have every acknowledged message.
So a member is required before it is put there, and until it is no longer there. While it is not known what stands
there, no member leaves, and a master that has just opened takes no messages: another one may have been given its epoch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from appliance.broker.epochs.standing import StandingFile
from appliance.register.etcd import EtcdError
from appliance.register.register import LogShortened, Register
from appliance.register.term import IN_SYNC, LOCAL, Term
from appliance.settings.roles import BrokerConfig

logger = logging.getLogger(__name__)


class PublishedSet:
    """on_other: another epoch than this master's is on record. on_shortened: others have more of its log."""

    def __init__(
        self,
        register: Register,
        config: BrokerConfig,
        standing: StandingFile,
        on_other: Callable[[Term], None],
        on_shortened: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._register = register
        self._level = IN_SYNC if config.is_sync_master and config.all_ack_in_sync else LOCAL
        self._standing = standing
        self._on_other, self._on_shortened = on_other, on_shortened
        self._why_not = "etcd has not answered yet"
        self.is_confirmed = False  # etcd has had this master's epoch on record since it opened

    @property
    def lacking(self) -> str:
        """Why this master takes no messages; "" when it may."""
        return "" if self.is_confirmed else f"etcd has not confirmed that this is the master: {self._why_not}"

    @property
    def state(self) -> str:
        """For people: what stands in etcd, or why that is not known."""
        return self._why_not or "on record"

    async def keep(
        self,
        names: Collection[str],
        own_address: str,
        stores: Mapping[str, tuple[str, str]] | None = None,
        *,
        end: int = -1,
    ) -> bool:
        """Have these on record, and say if they are. stores, end: see Register.publish."""
        epochs = self._standing.standing.epochs
        try:
            term = await self._register.publish(
                epochs.current, epochs.current_id, own_address, names, self._level, stores, end=end
            )
        except LogShortened as exc:
            self._note(str(exc))
            self._on_shortened(str(exc))
            return False
        except EtcdError as exc:
            self._note(str(exc))
            return False
        if term.is_of(epochs.current, epochs.current_id):
            self._note("")
            self.is_confirmed = True
            return True
        self._note(f"it has epoch {term.epoch} of {term.owner} on record")
        self._on_other(term)
        return False

    def _note(self, why_not: str) -> None:
        """Log what has changed, not each second."""
        if why_not != self._why_not:
            self._why_not = why_not
            facts = {"event": "in_sync_not_published", "why": why_not}
            if why_not:
                logger.error("in-sync set is not stored in etcd: no slave leaves it", extra=facts)
            else:
                logger.info("in-sync set is stored in etcd", extra={"event": "in_sync_published"})
