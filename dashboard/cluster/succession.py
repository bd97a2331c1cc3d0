"""The gateway's changes of a broker's master: what would be done, what speaks against it, and doing it.

The checks are those of `gantry admin promote` and `switchover`, by the same code. Where a master answers it is a
switchover; otherwise a promotion.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from dashboard.cluster.calls import CALL_ERRORS, CLUSTER_MAX_AGE_S, ClusterCalls
from dashboard.cluster.errors import (
    BrokerNotFound,
    BrokerUnreachable,
    ClusterUnreachable,
    GatewayError,
    NoSuccessor,
    NotAllowed,
    explain,
)
from dashboard.language.sentences import gettext, joined
from dashboard.language.told import told_in_words
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.client.admin.members import Member
from gantrymq.client.admin.promotion import Promotion
from gantrymq.client.admin.succession import TURN_TIMEOUT_S, Changed
from gantrymq.errors import ConfigError, GantryError, ResponseError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.timeouts import timeout

LOOK_TIMEOUT_S = 10.0  # a member that is gone may cost the client's own limit, twice
SHOWN_TIMEOUT_S = 10.0  # for the new master to register: it does so as it opens
LOOK_AGAIN_S = 0.1
FAILOVER_TIMEOUT_S = 6.0  # etcd is given 2 s for each of up to two questions, and a pause 2 s between them
CHANGE_TIMEOUT_S = 2 * TURN_TIMEOUT_S  # above what the steps themselves take at most


@dataclass(frozen=True, slots=True)
class Succession:
    """Who could take over from whom. master: of now, None when none answers; promotion: None without a slave.

    accepts_unknown: a promotion goes on although no member can say that nothing acknowledged is lost.
    """

    broker_name: str
    members: list[Member]
    master: Member | None
    promotion: Promotion | None
    why_none: str = ""
    accepts_unknown: bool = False

    @property
    def slaves(self) -> list[Member]:
        return [member for member in self.members if member.answers and not member.is_master]

    @property
    def obstacles(self) -> list[str]:
        """What still speaks against it."""
        if self.promotion is None:
            return [self.why_none]
        return self.promotion.left_with(accept_unknown=self.accepts_unknown)

    @property
    def is_possible(self) -> bool:
        return not self.obstacles

    @property
    def seen(self) -> str:
        """What a person agrees to; another text when it has changed since. Under a switchover the log may grow."""
        if self.promotion is None:
            return ""
        slave = self.promotion.slave
        facts = [slave.address, slave.epoch, self.master.address if self.master else slave.end]
        return " ".join(map(str, facts))


@dataclass(frozen=True, slots=True)
class Settlement:
    """Masters whose logs differ, and whose log may be chosen to count: where one epoch was begun twice, or where what
    was confirmed would be cut."""

    broker_name: str
    members: list[Member]

    @property
    def masters(self) -> list[Member]:
        """Of these one's log can be kept."""
        return [member for member in self.members if member.is_master]

    @property
    def is_needed(self) -> bool:
        waits = [member.info.get("slaveState") == "CONFIRMED" for member in self.members]
        rivals = [member.info.get("epochRival", "none") != "none" for member in self.members]
        return bool(self.masters) and (len(self.masters) > 1 or any(waits) or any(rivals))

    @property
    def silent(self) -> list[str]:
        return [member.address for member in self.members if not member.answers]

    @property
    def seen(self) -> str:
        """What a person agrees to; another text when it has changed since."""
        return " ".join(f"{each.address} {each.log_epoch} {each.info.get('epochId', '')}" for each in self.members)


class SuccessionCalls:
    """`gateway.succession`."""

    def __init__(self, calls: ClusterCalls) -> None:
        self._calls = calls

    async def plan(
        self, broker_name: str, address: str | None = None, *, accepted_loss: int = 0, accepts_unknown: bool = False
    ) -> Succession:
        """What a change to that slave, or to the best, would be. BrokerNotFound, BrokerUnreachable."""
        await self._check_name(broker_name)
        try:
            members = await self._calls.call(lambda admin: admin.succession.view(broker_name), LOOK_TIMEOUT_S)
            master = next((member for member in members if member.is_master), None)
            if master is not None:
                master, promotion = await self._calls.call(
                    lambda admin: admin.succession.switch(broker_name, address), LOOK_TIMEOUT_S
                )
            else:
                promotion = await self._calls.call(
                    lambda admin: admin.succession.promotion(broker_name, address, accepted_loss=accepted_loss),
                    LOOK_TIMEOUT_S,
                )
        except ConfigError as exc:
            return Succession(broker_name, members, master, None, str(exc))
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(_said_of(broker_name, exc)) from exc
        return Succession(broker_name, members, master, promotion, accepts_unknown=accepts_unknown and master is None)

    async def change(self, succession: Succession) -> Changed:
        """Do what was planned. Raises NoSuccessor; it says what did not work, and the members what is now."""
        promotion, master = succession.promotion, succession.master
        assert promotion is not None
        try:
            if master is None:
                changed = await self._calls.call(
                    lambda admin: admin.succession.promote(promotion, accept_unknown=succession.accepts_unknown),
                    CHANGE_TIMEOUT_S,
                )
            else:
                changed = await self._calls.call(
                    lambda admin: admin.succession.switch_over(master, promotion), CHANGE_TIMEOUT_S
                )
        except (GantryError, OSError, TimeoutError) as exc:
            raise NoSuccessor(_said_of(succession.broker_name, exc)) from exc
        with contextlib.suppress(ClusterUnreachable, TimeoutError):  # the change is made: pages follow when they can
            async with timeout(SHOWN_TIMEOUT_S):
                await self._until_registered(changed)
        return changed

    async def failover(self, broker_name: str, *addresses: str) -> FailoverStatus:
        """What etcd has on record of the name, as a broker tells it. BrokerUnreachable when none does, NotAllowed when
        the broker knows nothing of it."""
        if not addresses:
            await self._check_name(broker_name)
        try:
            return await self._calls.call(
                lambda admin: admin.succession.failover(broker_name, *addresses), FAILOVER_TIMEOUT_S
            )
        except CALL_ERRORS as exc:
            raise _refusal(broker_name, exc, BrokerUnreachable) from exc

    async def pause(self, broker_name: str, who: str, why: str, until_ms: int) -> None:
        """Have no member become the master by itself. Raises NoSuccessor: it says why not."""
        await self._check_name(broker_name)
        try:
            await self._calls.call(
                lambda admin: admin.succession.pause_failover(broker_name, who=who, why=why, until_ms=until_ms),
                FAILOVER_TIMEOUT_S,
            )
        except CALL_ERRORS as exc:
            raise _refusal(broker_name, exc, NoSuccessor) from exc

    async def resume(self, broker_name: str, who: str, *, is_forced: bool) -> None:
        """End the pause. Raises NoSuccessor while the master does not renew, unless forced."""
        await self._check_name(broker_name)
        try:
            await self._calls.call(
                lambda admin: admin.succession.resume_failover(broker_name, who=who, force=is_forced),
                FAILOVER_TIMEOUT_S,
            )
        except CALL_ERRORS as exc:
            raise _refusal(broker_name, exc, NoSuccessor) from exc

    async def settlement(self, broker_name: str) -> Settlement:
        """Whose log could be chosen. BrokerNotFound, BrokerUnreachable."""
        await self._check_name(broker_name)
        try:
            members = await self._calls.call(lambda admin: admin.succession.view(broker_name), LOOK_TIMEOUT_S)
        except CALL_ERRORS as exc:
            raise BrokerUnreachable(_said_of(broker_name, exc)) from exc
        return Settlement(broker_name, members)

    async def settle(self, broker_name: str, keep: str, *, accepts_unknown: bool = False) -> Changed:
        """Have the log of the master `keep` count. Raises NoSuccessor, which says how far it came."""
        try:
            return await self._calls.call(
                lambda admin: admin.succession.settle(broker_name, keep, accept_unknown=accepts_unknown),
                CHANGE_TIMEOUT_S,
            )
        except (GantryError, OSError, TimeoutError) as exc:
            raise NoSuccessor(_said_of(broker_name, exc)) from exc

    async def _check_name(self, broker_name: str) -> None:
        cluster = await self._calls.cluster(max_age_s=CLUSTER_MAX_AGE_S)
        if all(broker.name != broker_name for broker in (*cluster.brokers, *cluster.slaves)):
            raise BrokerNotFound(gettext("There is no broker %(name)s.") % {"name": broker_name})

    async def _until_registered(self, changed: Changed) -> None:
        """Wait until a name server knows the new master: the page that is shown next asks it who there is."""
        while True:
            cluster = await self._calls.cluster(max_age_s=0)
            if any(
                (broker.name, broker.address) == (changed.broker_name, changed.address) for broker in cluster.brokers
            ):
                return
            await asyncio.sleep(LOOK_AGAIN_S)


def _refusal(broker_name: str, exc: Exception, otherwise: type[GatewayError]) -> GatewayError:
    """A broker that answers with no is no failure: it has no automatic failover, or says why not now."""
    if isinstance(exc, ResponseError) and exc.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
        return NotAllowed(
            gettext("%(name)s has no automatic failover: it is no broker of GantryMQ, or an older one.")
            % {"name": broker_name}
        )
    kind = NotAllowed if isinstance(exc, ResponseError) else otherwise
    return kind(_said_of(broker_name, exc))


def _said_of(broker_name: str, exc: Exception) -> str:
    """What a broker answered, or why none did, in the language of the page."""
    return joined([broker_name, told_in_words(explain(exc))], ": ")
