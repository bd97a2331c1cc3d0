"""Admin calls that change which broker of a name is the master: by hand, with the checks that a careful person makes.

`view` asks all members what they know. `promotion` says what a promotion would mean and what speaks against it;
`promote` does it. `switch_over` moves a master that is well to one of its slaves, with nothing lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gantrymq.client.admin.brokers import BrokerAdmin
from gantrymq.client.admin.calls import AdminCalls, ask_each
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.errors import ConfigError, GantryError, ResponseError
from gantrymq.remoting.codes import RequestCode

TURN_TIMEOUT_S = 120.0  # for a broker to open in its new role: a large store may take its time
LOOK_S = 0.1
HOLD_S = 60.0  # a master takes messages again by itself after so long
CATCH_UP_S = 20.0  # bounds for what hangs: a slave in sync needs a fraction of a second
MASTER_CHECK_S = 10.0  # a slave asks its master first, which may not answer
BEHIND_BYTES_MAX = 16 << 20  # more is caught up with before messages are held back, not meanwhile


@dataclass(frozen=True, slots=True)
class Member:
    """One broker of a name; info: its figures, empty when it does not answer."""

    address: str
    broker_id: int | None  # None: the name servers don't list it
    info: dict[str, str] = field(default_factory=dict)

    @property
    def answers(self) -> bool:
        """Whether it does."""
        return bool(self.info)

    @property
    def is_master(self) -> bool:
        """Whether it says so of itself; of Apache's brokers the id tells. False when it does not answer."""
        role = self.info.get("brokerRole") or ("ASYNC_MASTER" if self.broker_id == 0 else "SLAVE")
        return self.answers and role != "SLAVE"

    @property
    def epoch(self) -> int:
        """The highest that it has heard of; 0: it knows none."""
        return int(self.info.get("epochHighest", "0"))

    @property
    def end(self) -> int:
        """How far its log reaches, in bytes; -1: it does not say."""
        return int(self.info.get("commitLogMaxOffset", "-1"))

    @property
    def state(self) -> str:
        """What a slave does, with why."""
        why = self.info.get("slaveStateWhy", "none")
        return self.info.get("slaveState", "") + ("" if why == "none" else f": {why}")

    @property
    def told_in_sync(self) -> tuple[int, int, str]:
        """What its master told of the slaves in sync last: the epoch, up to where it was confirmed, and their names."""
        told = self.info.get("inSyncSetTold", "none")
        if told == "none":
            return 0, -1, ""
        return int(self.info.get("inSyncEpochTold", "0")), int(self.info.get("confirmedOffsetTold", "-1")), told

    @property
    def missing_bytes(self) -> int | None:
        """What a slave lacks of its master's log as that was when it was last heard of; None: never heard."""
        master_end = int(self.info.get("slaveMasterEnd", "-1"))
        return None if master_end < 0 else max(master_end - self.end, 0)

    @property
    def heard(self) -> str:
        """When a slave last heard of its master: seconds, or never."""
        return self.info.get("slaveHeardSecondsAgo", "never")


@dataclass(frozen=True, slots=True)
class Promotion:
    """What a promotion would do. obstacles: what speaks against it, a sentence each."""

    broker_name: str
    slave: Member
    obstacles: list[str]

    @property
    def epoch(self) -> int:
        """The new master's: one above the highest that the slave has heard of."""
        return self.slave.epoch + 1


@dataclass(frozen=True, slots=True)
class Changed:
    """A new master. seconds: from the request until the name servers knew it; for a switch-over: without messages."""

    broker_name: str
    address: str
    epoch: int
    seconds: float


class SuccessionAdmin:
    """`admin.succession`."""

    def __init__(self, calls: AdminCalls, cluster: ClusterAdmin, brokers: BrokerAdmin) -> None:
        self._calls = calls
        self._cluster = cluster
        self._brokers = brokers

    async def view(self, broker_name: str, *further: str) -> list[Member]:
        """The members that the name servers list, and further addresses, with their figures. ConfigError."""
        table = (await self._cluster.info()).broker_addr_table
        listed = dict(table[broker_name].broker_addrs) if broker_name in table else {}
        if not listed and not further:
            raise ConfigError(f"there is no broker {broker_name}; known: {', '.join(sorted(table)) or 'none'}")
        ids: dict[str, int | None] = dict.fromkeys(further)
        ids |= {address: broker_id for broker_id, address in sorted(listed.items())}
        infos, _failures = await ask_each(ids, self._brokers.runtime_info)
        return [Member(address, broker_id, infos.get(address, {})) for address, broker_id in ids.items()]

    async def promotion(self, broker_name: str, address: str | None = None, *, accepted_loss: int = 0) -> Promotion:
        """What it would mean to promote that slave, or else the one with the longest log. ConfigError without one."""
        members = await self.view(broker_name, *filter(None, [address]))
        slaves = [member for member in members if member.answers and not member.is_master]
        slave = _chosen(slaves, address, broker_name)
        obstacles = [
            f"{member.address} answers, and is the master of epoch {member.epoch}: use a switch-over, or stop it first"
            for member in members
            if member.is_master
        ]
        obstacles += [
            f"{other.address} has {other.end - slave.end:,} bytes more of the log than {slave.address}"
            for other in slaves
            if other.end > slave.end
        ]
        epoch, confirmed, names = max(member.told_in_sync for member in slaves)
        if epoch == slave.epoch and slave.end < confirmed:
            obstacles.append(
                f"{slave.address} lacks {confirmed - slave.end:,} bytes that were confirmed: {names} was in sync with "
                "its master"
            )
        if not slave.epoch:
            obstacles.append(f"{slave.address} knows no epochs: it has not followed a master of GantryMQ yet")
        missing = slave.missing_bytes
        if missing is None:
            obstacles.append(
                f"{slave.address} has not heard of its master since it started: what it lacks is not known"
            )
        elif missing > accepted_loss:
            obstacles.append(f"{slave.address} lacks {missing:,} bytes that the master had {slave.heard} s ago")
        return Promotion(broker_name, slave, obstacles)

    async def promote(self, promotion: Promotion, *, force: bool = False) -> Changed:
        """Promote the slave as it was seen; refused when it has changed since. Returns once all know it."""
        if promotion.obstacles and not force:
            raise ConfigError("; ".join(promotion.obstacles))
        began = time.monotonic()
        await self._ask_promotion(promotion.slave, promotion.slave.end, {"force": str(force).lower()})
        await self._is_master(promotion.broker_name, promotion.slave.address, promotion.epoch)
        return Changed(promotion.broker_name, promotion.slave.address, promotion.epoch, time.monotonic() - began)

    async def switch(self, broker_name: str, address: str | None = None) -> tuple[Member, Promotion]:
        """What a switch-over would do: the master of now, and the promotion. ConfigError without a master."""
        members = await self.view(broker_name)
        master = next((member for member in members if member.is_master), None)
        if master is None:
            raise ConfigError(f"no master of {broker_name} answers: promote a slave instead")
        slaves = [member for member in members if member.answers and not member.is_master]
        slave = _chosen(slaves, address, broker_name)
        obstacles = []
        if slave.info.get("slaveState") != "copying":
            obstacles.append(f"{slave.address} is not copying: {slave.state}")
        elif master.end - slave.end > BEHIND_BYTES_MAX:
            obstacles.append(f"{slave.address} is {master.end - slave.end:,} bytes behind: let it catch up first")
        if not master.epoch or master.epoch != slave.epoch:
            obstacles.append(f"{master.address} is of epoch {master.epoch}, {slave.address} of epoch {slave.epoch}")
        return master, Promotion(broker_name, slave, obstacles)

    async def switch_over(self, master: Member, promotion: Promotion) -> Changed:
        """Hold back messages at the master until the slave has all, promote it, and wait until both know.

        When anything fails before the promotion, the master goes on; after HOLD_S it does so by itself.
        """
        if promotion.obstacles:
            raise ConfigError("; ".join(promotion.obstacles))
        slave, began = promotion.slave, time.monotonic()
        held = {"seconds": f"{HOLD_S:g}", "catchUpSeconds": f"{CATCH_UP_S:g}", "slave": slave.address}
        try:
            answer = await self._calls.call(
                master.address, RequestCode.HOLD_MESSAGES, held, timeout_s=CATCH_UP_S + self._calls.timeout_s
            )
            await self._promote_planned(slave, int(answer.ext_fields["end"]))
        except BaseException:
            await self._calls.call(master.address, RequestCode.HOLD_MESSAGES, {"seconds": "0"})
            raise
        await self._is_master(promotion.broker_name, slave.address, promotion.epoch)
        seconds = time.monotonic() - began

        async def follows() -> bool:
            info = await self._brokers.runtime_info(master.address)
            return info.get("slaveState") == "copying" and info.get("epoch") == str(promotion.epoch)

        await _until(follows, f"{master.address} does not follow {slave.address} yet; `gantry admin cluster` tells why")
        return Changed(promotion.broker_name, slave.address, promotion.epoch, seconds)

    # -- steps --------------------------------------------------------------------------------------------------------

    async def _promote_planned(self, slave: Member, end: int) -> None:
        """Ask until the slave has the master's tables, too: they come within a second."""
        deadline = time.monotonic() + CATCH_UP_S
        while True:
            try:
                await self._ask_promotion(slave, end, {"planned": "true"})
                return
            except ResponseError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(LOOK_S)

    async def _ask_promotion(self, slave: Member, end: int, further: dict[str, str]) -> None:
        fields = {"epoch": str(slave.epoch), "end": str(end), **further}
        timeout_s = self._calls.timeout_s + MASTER_CHECK_S
        await self._calls.call(slave.address, RequestCode.PROMOTE_SLAVE, fields, timeout_s=timeout_s)

    async def _is_master(self, broker_name: str, address: str, epoch: int) -> None:
        async def is_it() -> bool:
            info = await self._brokers.runtime_info(address)
            if info.get("brokerRole", "SLAVE") == "SLAVE" or info.get("epoch") != str(epoch):
                return False
            data = (await self._cluster.info()).broker_addr_table.get(broker_name)
            return data is not None and data.master_address == address

        await _until(is_it, f"{address} was asked to become the master, and is not known as it yet; its log tells why")


def _chosen(slaves: list[Member], address: str | None, broker_name: str) -> Member:
    if address is not None:
        slaves = [slave for slave in slaves if slave.address == address]
    if not slaves:
        which = (
            f"{address} is no slave of {broker_name} that answers" if address else f"no slave of {broker_name} answers"
        )
        raise ConfigError(which)
    return max(slaves, key=lambda slave: slave.end)


async def _until(is_so: Callable[[], Awaitable[bool]], otherwise: str) -> None:
    """Ask until it is so; a broker that opens anew does not answer for a moment. GantryError when it takes too long."""
    deadline = time.monotonic() + TURN_TIMEOUT_S
    while True:
        try:
            if await is_so():
                return
        except GantryError:
            pass
        if time.monotonic() > deadline:
            raise GantryError(otherwise)
        await asyncio.sleep(LOOK_S)
