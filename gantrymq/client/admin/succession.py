"""Admin calls that change which broker of a name is the master: by hand, with the checks that a careful person makes.

`view` asks all members what they know. `promotion` says what a promotion would mean and what speaks against it;
`promote` does it. `switch_over` moves a master that is well to one of its slaves, with nothing lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import orjson

from gantrymq.client.admin.brokers import BrokerAdmin
from gantrymq.client.admin.calls import AdminCalls, ask_each
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.client.admin.members import EPOCH_OF, Known, Member, NameServerView
from gantrymq.client.admin.promotion import Promotion, chosen, judge
from gantrymq.client.connection.answer_fields import int_field
from gantrymq.errors import BodyError, ConfigError, ConnectError, GantryError, RequestTimeout, ResponseError
from gantrymq.remoting.bodies import ClusterInfo
from gantrymq.remoting.codes import RequestCode
from gantrymq.timeouts import timeout

logger: logging.Logger = logging.getLogger(__name__)

TURN_TIMEOUT_S = 120.0  # for a broker to open in its new role: a large store may take its time
LOOK_S = 0.1
HOLD_S = 60.0  # a master takes messages again by itself after so long
SWITCH_S = 60.0  # for all of a switchover
RELEASE_S = 3.0
CATCH_UP_S = 10.0  # bounds for what hangs: a slave in sync needs a fraction of a second
MASTER_CHECK_S = 15.0  # a slave asks all members and name servers first, which may not answer
BEHIND_BYTES_MAX = 16 << 20  # more is caught up with before messages are held back, not meanwhile


@dataclass(frozen=True, slots=True)
class Changed:
    """A new master. seconds: from the request until the name servers knew it; for a switchover: without messages."""

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
        return (await self.known(broker_name, *further)).members

    async def known(self, broker_name: str, *further: str) -> Known:
        """What all members and all name servers answer; members are also those that a slave was told of.

        ConfigError when the name is unknown.
        """
        name_servers = await asyncio.gather(
            *(self._ask_name_server(address, broker_name) for address in self._calls.name_servers.addresses)
        )
        if not any(server.answers for server in name_servers):
            await self._cluster.info()  # which raises what is wrong
        ids: dict[str, int | None] = dict.fromkeys(further)
        for server in name_servers:
            ids |= {address: broker_id for broker_id, address in sorted(server.members.items())}
        if not ids:
            known = sorted((await self._cluster.info()).broker_addr_table)
            raise ConfigError(f"there is no broker {broker_name}; known: {', '.join(known) or 'none'}")
        infos: dict[str, dict[str, str]] = {}
        refusing: set[str] = set()
        while left := [address for address in ids if address not in infos]:
            answers, failures = await ask_each(left, self._brokers.runtime_info)
            infos |= {address: answers.get(address, {}) for address in left}
            refusing |= {address for address, why in failures.items() if isinstance(why, ResponseError)}
            for address in left:
                ids = dict.fromkeys(Member(address, None, infos[address]).names_others) | ids
        members = [Member(each, number, infos[each], refuses=each in refusing) for each, number in ids.items()]
        return Known(members, name_servers)

    async def promotion(
        self, broker_name: str, address: str | None = None, *, accepted_loss: int = 0, from_apache: bool = False
    ) -> Promotion:
        """What it would mean to promote that slave, or else the one with the longest log. ConfigError without one.

        from_apache: its master was one of Apache RocketMQ.
        """
        known = await self.known(broker_name, *filter(None, [address]))
        return judge(broker_name, known, address, accepted_loss=accepted_loss, from_apache=from_apache)

    async def promote(self, promotion: Promotion, *, force: bool = False, accept_unknown: bool = False) -> Changed:
        """Promote the slave as it was seen; refused when it has changed since. Returns once all know it.

        accept_unknown: although no member can say whether it has all that was acknowledged; force: whatever is known.
        """
        is_accepted = accept_unknown or promotion.is_for_register
        if (left := promotion.left_with(accept_unknown=is_accepted)) and not force:
            raise ConfigError("; ".join(left))
        began = time.monotonic()
        accepted = {
            "force": str(force).lower(),
            "acceptUnknown": str(accept_unknown).lower(),
            "acceptLoss": str(promotion.accepted_loss),
            "above": str(promotion.above),
            "fromApache": str(promotion.from_apache).lower(),
        }
        epoch = await self._ask_promotion(promotion.slave, promotion.slave.end, accepted)
        await self._is_master(promotion.broker_name, promotion.slave.address, epoch)
        return Changed(promotion.broker_name, promotion.slave.address, epoch, time.monotonic() - began)

    async def switch(self, broker_name: str, address: str | None = None) -> tuple[Member, Promotion]:
        """What a switchover would do: the master of now, and the promotion. ConfigError without a master."""
        known = await self.known(broker_name)
        members = known.members
        master = next((member for member in members if member.is_master), None)
        if master is None:
            raise ConfigError(f"no master of {broker_name} answers: promote a slave instead")
        slaves = [member for member in members if member.answers and not member.is_master]
        slave = chosen(slaves, address, broker_name)
        obstacles = []
        if slave.info.get("slaveState") != "copying":
            obstacles.append(f"{slave.address} is not copying: {slave.state}")
        elif master.end - slave.end > BEHIND_BYTES_MAX:
            obstacles.append(f"{slave.address} is {master.end - slave.end:,} bytes behind: let it catch up first")
        if not master.epoch or master.epoch != slave.epoch:
            obstacles.append(f"{master.address} is of epoch {master.epoch}, {slave.address} of epoch {slave.epoch}")
        return master, Promotion(broker_name, slave, obstacles, above=known.highest_epoch)

    async def switch_over(self, master: Member, promotion: Promotion) -> Changed:
        """Hold back messages at the master until the slave has all, promote it, and wait until both know.

        When anything fails before the promotion, the master goes on. It ends within SWITCH_S, also when a broker is
        lost meanwhile: the GantryError says how far it came. While it is not known whether the slave was promoted, the
        master holds back messages until HOLD_S are over.
        """
        if promotion.obstacles:
            raise ConfigError("; ".join(promotion.obstacles))
        slave, began = promotion.slave, time.monotonic()
        undecided = f"{slave.address} has not become the master within {SWITCH_S:g} s: look at `gantry admin cluster`"
        async with _within(SWITCH_S, lambda: undecided):
            await self._hold_and_promote(master, promotion)
            await self._is_master(promotion.broker_name, slave.address, promotion.epoch)
        seconds = time.monotonic() - began
        await self._until_followed(master.address, promotion, max(SWITCH_S - seconds, LOOK_S))
        return Changed(promotion.broker_name, slave.address, promotion.epoch, seconds)

    async def settlement(self, broker_name: str, keep: str, *, accept_unknown: bool = False) -> Known:
        """Who would be asked to give up what. ConfigError for what speaks against it."""
        known = await self.known(broker_name, keep)
        silent = [member.address for member in known.members if not member.answers]
        silent += [server.address for server in known.name_servers if not server.answers]
        if not next(member for member in known.members if member.address == keep).is_master:
            raise ConfigError(f"{keep} is not a master that answers: promote it first, then settle")
        if silent and not accept_unknown:
            raise ConfigError(f"{', '.join(silent)} do not answer, and may know of more: start them first")
        return known

    async def settle(self, broker_name: str, keep: str, *, accept_unknown: bool = False) -> Changed:
        """Decide that the log of the master `keep` counts. Others give up what they have beside it, confirmed or not;
        it stays in a folder beside their stores. A master whose epoch was begun twice, or that has handed over, begins
        a higher one first.

        accept_unknown: go on although members or name servers do not answer. ConfigError; GantryError when a member
        was not notified.
        """
        began = time.monotonic()
        known = await self.settlement(broker_name, keep, accept_unknown=accept_unknown)
        keeper = next(member for member in known.members if member.address == keep)
        epoch, others = keeper.log_epoch, [member.address for member in known.members if member.address != keep]
        if any(keeper.info.get(key, "none") != "none" for key in ("epochRival", "epochHandedTo")):
            further = {"decided": "true", "above": str(known.highest_epoch), "members": ",".join(others)}
            epoch = await self._ask_promotion(keeper, keeper.end, further)
            await self._is_master(broker_name, keep, epoch)
        epoch_id = (await self._brokers.runtime_info(keep))["epochId"]
        answering = [member.address for member in known.members if member.answers and member.address != keep]
        fields = {"brokerName": broker_name, "epoch": str(epoch), "epochId": epoch_id, "master": keep, "yield": "true"}
        await asyncio.gather(*(self._have_yield(address, fields) for address in answering))
        return Changed(broker_name, keep, epoch, time.monotonic() - began)

    async def join(self, broker_name: str, address: str) -> int:
        """Have a member join its group in etcd; return its number there. GantryError.

        Asked again once if the connection breaks: a master whose record is new closes its connections until etcd has
        proved it. A member that has joined already answers with its number.
        """
        fields = {"brokerName": broker_name}
        try:
            answer = await self._calls.call(address, RequestCode.JOIN_GROUP, fields)
        except ConnectError:
            answer = await self._calls.call(address, RequestCode.JOIN_GROUP, fields)
        return int_field(answer, "memberNumber", address)

    async def failover(self, broker_name: str, *addresses: str) -> FailoverStatus:
        """What etcd has on record, as the first of these brokers that answers tells it; without addresses of all
        members that are known. One that etcd answers counts more, and of those one that knows of trouble with etcd.
        ConfigError; GantryError when none answers."""
        asked = addresses or tuple(each.address for each in await self.view(broker_name) if each.answers)
        answers, failures = await ask_each(asked, self.failover_at)
        if not answers:
            raise next(iter(failures.values()), ConfigError(f"no broker of {broker_name} answers"))
        best = min(answers.values(), key=lambda told: (bool(told.unknown), not told.etcd_trouble))
        tails = tuple(each for told in answers.values() for each in told.kept_tails)
        shared = tuple(each for told in answers.values() for each in told.shared_stores)
        return dataclasses.replace(best, kept_tails=tails, shared_stores=shared)

    async def failover_at(self, address: str) -> FailoverStatus:
        """The same, of one broker. ConnectError, RequestTimeout, ResponseError; BodyError."""
        answer = await self._calls.call(address, RequestCode.GET_FAILOVER)
        try:
            return FailoverStatus.from_dict(orjson.loads(answer.body))
        except (ValueError, TypeError, AttributeError) as exc:
            raise BodyError(f"{address}: the answer is not understood: {exc!r}") from exc

    async def pause_failover(self, broker_name: str, *, who: str, why: str, until_ms: int = 0) -> None:
        """Have no broker of this name become the master by itself. until_ms: the planned end, for people; 0: none.

        ResponseError when it is paused already, or etcd does not answer.
        """
        await self._ask_any(broker_name, {"who": who, "why": why, "until": str(until_ms)})

    async def resume_failover(self, broker_name: str, *, who: str, force: bool = False) -> None:
        """End the pause. ResponseError while the master does not renew in etcd, since it would be replaced then; force:
        also then."""
        await self._ask_any(broker_name, {"ends": "true", "who": who, "force": str(force).lower()})

    async def _ask_any(self, broker_name: str, fields: dict[str, str]) -> None:
        """Have the first member that answers change the pause in etcd. A request without an answer may have done it."""
        members = [each for each in await self.view(broker_name) if each.answers]
        if not members:
            raise ConfigError(f"no broker of {broker_name} answers")
        first = min(members, key=lambda each: not each.is_master)
        asked = {"brokerName": broker_name, **fields}
        await self._calls.call(first.address, RequestCode.PAUSE_FAILOVER, asked)

    # -- steps --------------------------------------------------------------------------------------------------------

    async def _hold_and_promote(self, master: Member, promotion: Promotion) -> None:
        slave, is_asked = promotion.slave, False
        held = {"seconds": f"{HOLD_S:g}", "catchUpSeconds": f"{CATCH_UP_S:g}", "slave": slave.address}
        try:
            answer = await self._calls.call(
                master.address, RequestCode.HOLD_MESSAGES, held, timeout_s=CATCH_UP_S + self._calls.timeout_s
            )
            end = int_field(answer, "end", master.address)
            is_asked = True
            await self._promote_planned(promotion, end)
        except BaseException as exc:
            # A request without an answer may still be executed: then the master must not take messages again at once.
            if not is_asked or isinstance(exc, ResponseError):
                await self._release(master)
            raise

    async def _release(self, master: Member) -> None:
        """Have the master take messages again; it does so by itself later when it can't be told."""
        try:
            fields = {"seconds": "0"}
            await self._calls.call(master.address, RequestCode.HOLD_MESSAGES, fields, timeout_s=RELEASE_S)
        except GantryError as exc:
            logger.warning("master not released: %s", exc, extra={"event": "hold_not_ended", "error": str(exc)})

    async def _promote_planned(self, promotion: Promotion, end: int) -> None:
        """Ask until the slave has the master's tables, too: they come within a second. Without an answer, `_is_master`
        finds out: who turns closes its connections."""
        deadline = time.monotonic() + CATCH_UP_S
        while True:
            try:
                further = {"planned": "true", "above": str(promotion.above)}
                await self._ask_promotion(promotion.slave, end, further)
                return
            except ResponseError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(LOOK_S)
            except (ConnectError, RequestTimeout):
                return

    async def _ask_name_server(self, address: str, broker_name: str) -> NameServerView:
        try:
            answer = await self._calls.call(address, RequestCode.GET_BROKER_CLUSTER_INFO, {EPOCH_OF: broker_name})
            table = ClusterInfo.from_json(answer.body).broker_addr_table
        except GantryError:
            return NameServerView(address)
        members = dict(table[broker_name].broker_addrs) if broker_name in table else {}
        return NameServerView(address, True, members, answer.ext_fields)

    async def _ask_promotion(self, slave: Member, end: int, further: dict[str, str]) -> int:
        """Return the number of the new epoch."""
        fields = {"epoch": str(slave.epoch), "end": str(end), **further}
        timeout_s = self._calls.timeout_s + MASTER_CHECK_S
        answer = await self._calls.call(slave.address, RequestCode.PROMOTE_SLAVE, fields, timeout_s=timeout_s)
        return int_field(answer, "epoch", slave.address)

    async def _until_followed(self, address: str, promotion: Promotion, seconds: float) -> None:
        """Wait until the master of before copies from the new one. GantryError with what it does instead."""
        new, doing = promotion.slave.address, "has not been asked"

        async def follows() -> bool:
            nonlocal doing
            try:
                seen = Member(address, None, await self._brokers.runtime_info(address))
            except GantryError as exc:
                doing = f"does not answer: {exc}"
                raise
            doing = seen.doing
            return seen.info.get("slaveState") == "copying" and seen.log_epoch == promotion.epoch

        def otherwise() -> str:
            return f"{new} is the master in epoch {promotion.epoch}, but {address} does not follow it yet: it {doing}"

        async with _within(seconds, otherwise):
            await _until(follows, otherwise)

    async def _have_yield(self, address: str, fields: dict[str, str]) -> None:
        """Ask until it has it on record: the loser of two masters opens as a slave meanwhile."""

        async def told() -> bool:
            await self._calls.call(address, RequestCode.TELL_EPOCH, fields)
            return True

        await _until(told, lambda: f"{address} was not notified whose log counts: run the command again")

    async def _is_master(self, broker_name: str, address: str, epoch: int) -> None:
        async def is_it() -> bool:
            info = await self._brokers.runtime_info(address)
            if info.get("brokerRole", "SLAVE") == "SLAVE" or info.get("epoch") != str(epoch):
                return False
            data = (await self._cluster.info()).broker_addr_table.get(broker_name)
            return data is not None and data.master_address == address

        why = f"{address} was asked to become the master, and is not known as it yet; its log tells why"
        await _until(is_it, lambda: why)


@contextlib.asynccontextmanager
async def _within(seconds: float, otherwise: Callable[[], str]) -> AsyncGenerator[None]:
    """Bound a block; GantryError with that text when it takes longer."""
    try:
        async with timeout(seconds):
            yield
    except TimeoutError as exc:
        if isinstance(exc, GantryError):  # of a request
            raise
        raise GantryError(otherwise()) from None


async def _until(is_so: Callable[[], Awaitable[bool]], otherwise: Callable[[], str]) -> None:
    """Ask until it is so; a broker that opens anew does not answer for a moment. GantryError when it takes too long."""
    deadline = time.monotonic() + TURN_TIMEOUT_S
    while True:
        try:
            if await is_so():
                return
        except GantryError:
            pass
        if time.monotonic() > deadline:
            raise GantryError(otherwise())
        await asyncio.sleep(LOOK_S)
