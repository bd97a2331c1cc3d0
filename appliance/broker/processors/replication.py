"""Change of the master by hand: what `gantry admin promote` and `switchover` ask brokers of GantryMQ for.

A switchover is two requests of one tool: the master holds back messages until a slave has all of them, and that slave
is promoted, which has its master hand over first (master/hand_over.py). The master of before hears of it on the port
for slaves. If the tool dies in between, the master goes on when its hold ends, unless it has handed over.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import secrets
import time
from typing import TYPE_CHECKING, Protocol

import orjson

from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.epochs.members import Members
from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import HandedTo, Rival, StandingFile
from appliance.broker.epochs.turns import Promotion, Turns
from appliance.broker.failover.on_record import Seen
from appliance.broker.failover.told import kept_tails, status_of
from appliance.broker.replication.ha_client import HaState
from appliance.broker.replication.master.hand_over import HandOver
from appliance.broker.replication.master.holding import HOLD_S_MAX, Holding
from appliance.errors import BrokerError
from appliance.failover.lease import RENEW_EVERY_S
from appliance.failover.view import Holder, Pause
from appliance.process.awake import awake_s
from appliance.process.json_file import StateFileError
from appliance.register.etcd import EtcdError, OutcomeUnknown
from appliance.register.register import ID_BYTES, RESTORED, Register
from appliance.register.term import IN_SYNC, Term, View
from appliance.remoting.header_fields import int_field, long_field, text_field
from appliance.settings.replication import MASTER_ROLES
from appliance.settings.roles import BrokerConfig
from gantrymq.client.admin.failover import FailoverStatus
from gantrymq.errors import GantryError
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.broker.replication.follower import Follower
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

FRESH_S = 2 * RENEW_EVERY_S  # a master that is there has renewed within it
HOPELESS = (HaState.DIVERGED, HaState.CUTTING, HaState.JOINING)


class ReplicationParts(Protocol):
    """What these handlers use of the broker."""

    config: BrokerConfig
    address: str
    store: MessageStore
    outer_api: BrokerOuterApi
    follower: Follower | None
    standing: StandingFile
    member: MembershipFile
    turns: Turns
    holding: Holding
    hand_over: HandOver
    register: Register | None
    seen: Seen

    def heard(self, epoch: int, epoch_id: str, master: str, told_by: str, /) -> None:
        """See BrokerController."""


async def promote(parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand) -> None:
    """29401: this slave becomes the master. epoch, end: as the asking person saw them; anything else is refused.

    It asks all members and name servers itself what speaks against it, whatever the tool has asked. acceptUnknown,
    acceptLoss, force: what of that the person takes. planned: the master holds back messages, and the end is its own.
    fromApache: the master was Apache RocketMQ's.
    With etcd the epoch comes from there, and only as long as what was read there before the questions still stands.
    """
    with parts.turns.deciding():
        if parts.follower is None:
            await _begin_anew(parts, connection, request)
        else:
            await _begin(parts, parts.follower, connection, request)


async def _begin(
    parts: ReplicationParts, follower: Follower, connection: ServerConnection, request: RemotingCommand
) -> None:
    fields = request.ext_fields
    is_planned = fields.get("planned") == "true"
    was = parts.standing.standing.master_role or follower.synchronize.fence.master_role
    role = fields.get("brokerRole") or was or MASTER_ROLES[0]
    if role not in MASTER_ROLES:
        raise _refused(f"brokerRole={role}: use one of {', '.join(MASTER_ROLES)}")
    _check_as_seen(parts, fields)
    view = await _on_record(parts)
    if is_planned:
        _check_planned(parts, follower)
        above, others = 0, follower.sink.in_sync.names
    else:
        above, others = await _check_unplanned(parts, follower, fields, view)
    _check_as_seen(parts, fields)  # while others were asked
    epochs, end = parts.standing.standing.epochs, parts.store.max_physical_offset
    above = max(above, epochs.highest, int_field(fields, "above", 0, low=0))
    if is_planned:
        await _have_handed_over(parts, follower, end, above + 1)
    above, epoch_id = await _take_over(parts, view, above, _reason(fields), is_first=_is_from_apache(fields))
    untold = tuple(dict.fromkeys([follower.ha_client.master_address, *parts.standing.standing.untold]))
    logger.warning(
        "promotion requested",
        extra={
            "event": "admin_promotion",
            "peer": connection.remote_text,
            "epoch": above + 1,
            "physical_offset": end,
            "planned": is_planned,
            "forced": _is_forced(fields),
            "from_apache": _is_from_apache(fields),
            "unknown_accepted": fields.get("acceptUnknown") == "true",
        },
    )
    # The answer first: the broker closes its connections for the turn, and what was written until then still goes out.
    connection.reply(request, request.reply(ext_fields={"epoch": str(above + 1), "brokerRole": role}))
    parts.turns.ask(Promotion(role, tuple(filter(None, untold)), above, others, epoch_id))


def _check_as_seen(parts: ReplicationParts, fields: dict[str, str]) -> None:
    """Refuse when the log is another than the person saw, or an epoch has begun that the person did not know of.

    `epoch` is what this slave had heard of then, `above` what any member had. To hear of one of these only now changes
    nothing: the new epoch is above both.
    """
    highest, end = parts.standing.standing.epochs.highest, parts.store.max_physical_offset
    known = max(int_field(fields, "epoch", low=0), int_field(fields, "above", 0, low=0))
    if highest > known or long_field(fields, "end", low=0) != end:
        raise _refused(f"it has changed meanwhile: the highest epoch is {highest}, the log ends at {end}")


def _check_planned(parts: ReplicationParts, follower: Follower) -> None:
    """A switchover's: this slave follows its master, and has its tables."""
    if not follower.ha_client.is_copying:
        raise _refused(f"this log is not known to be its master's: {follower.ha_client.state}")
    if not (epochs := parts.standing.standing.epochs).is_current:
        raise _refused(f"epoch {epochs.highest} has begun elsewhere, and this log is of epoch {epochs.current}")
    if not follower.sink.has_tables:
        raise _refused("topics and groups of the master have not arrived yet: try again")


async def _have_handed_over(parts: ReplicationParts, follower: Follower, end: int, epoch: int) -> None:
    """The last thing before this broker's own record: from now on its master takes nothing. Refused when that is not
    known; the master asks this broker then, and goes on."""
    try:
        await follower.synchronize.take_over(parts.address, end, epoch)
    except GantryError as exc:
        raise _refused(f"its master does not give up its role: {exc}") from exc


async def _check_unplanned(
    parts: ReplicationParts, follower: Follower, fields: dict[str, str], view: View | None
) -> tuple[int, tuple[str, ...]]:
    """Ask all there are; return the highest epoch that any member knows, and who else there is. Refused for what the
    person did not accept."""
    is_forced, state = _is_forced(fields), follower.ha_client.state
    is_proven = view is not None and _is_proven(parts, view, is_forced=is_forced)
    if state in HOPELESS and not is_forced:
        raise _refused(f"this log is not known to be its master's: {state}")
    loss = long_field(fields, "acceptLoss", 0, low=0)
    promotion = await Members(parts.config).promotion(
        parts.address, parts.outer_api.addresses, loss, from_apache=_is_from_apache(fields)
    )
    if is_proven and view is not None and view.term is not None:
        # The set names a log as it was; after another boot of the machine the log may have lost its end.
        kept = view.term.still_holds(parts.address, parts.member.membership.boot)
        is_proven = promotion.slave.told_s_ago is not None if kept is None else kept
    left = promotion.left_with(accept_unknown=is_proven or fields.get("acceptUnknown") == "true")
    if left and not is_forced:
        raise _refused("; ".join([*left, RESTORED] if view is not None and view.is_restored else left))
    return promotion.above, tuple(promotion.others)


async def _on_record(parts: ReplicationParts) -> View | None:
    """What etcd has on record; None when no etcd gives out epochs here."""
    if parts.register is None:
        return None
    try:
        return await parts.register.view()
    except EtcdError as exc:
        raise _refused(f"the next epoch can't be taken: {exc}") from exc


def _is_proven(parts: ReplicationParts, view: View, *, is_forced: bool) -> bool:
    """Whether the set on record shows that this log has all that was acknowledged, although others do not answer: a
    master that is cut off acknowledges nothing without this slave, and can't take it out of the set once the epoch is
    taken.

    Refused when it shows the opposite.
    """
    term, epochs = view.term, parts.standing.standing.epochs
    if term is None or is_forced or view.is_restored:
        return False
    if term.epoch > epochs.current and not _is_own_unbegun(parts, term):
        raise _refused(f"etcd has epoch {term.epoch} of {term.owner} on record, and this log is of {epochs.current}")
    if term.level == IN_SYNC and parts.address not in term.in_sync:
        raise _refused(f"it is not in sync: etcd has {', '.join(term.in_sync)} on record")
    return term.proves(parts.address, epochs.current, epochs.current_id)


def _is_own_unbegun(parts: ReplicationParts, term: Term) -> bool:
    """Whether the later epoch was given to this very store, which was killed before it began it: it has no messages."""
    owner = term.holders.get(term.owner)
    is_own = term.owner == parts.address if owner is None else owner.id == parts.member.membership.number
    return term.is_unbegun and is_own


async def _take_over(
    parts: ReplicationParts, view: View | None, above: int, reason: str, *, is_first: bool = False
) -> tuple[int, str]:
    """Take the next epoch from etcd; return the number before it and its id. Without etcd: `above`, and no id.

    is_first: nothing has to be on record there yet.
    """
    if parts.register is None or view is None:
        return above, ""
    try:
        end = parts.store.max_physical_offset
        own = parts.member.membership
        holder = Holder(own.number, own.boot) if own.number else None
        epoch_id = secrets.token_hex(ID_BYTES)
        parts.turns.asked.add(epoch_id)
        term = await parts.register.take_over(
            view,
            parts.address,
            above=above,
            start=end,
            reason=reason,
            is_first=is_first,
            holder=holder,
            epoch_id=epoch_id,
        )
    except OutcomeUnknown as exc:
        if parts.follower is not None and parts.follower.candidate is not None:  # which begins it, or has it settled
            parts.turns.unsettled = view.cluster_id, view.term_revision
        raise _refused(f"whether it has the next epoch is not known, `gantry admin ha status` tells: {exc}") from exc
    except EtcdError as exc:
        raise _refused(f"the next epoch can't be taken: {exc}") from exc
    return term.epoch - 1, term.id


def _reason(fields: dict[str, str]) -> str:
    """What the command was, for the history in etcd."""
    what = "switchover" if fields.get("planned") == "true" else "promote"
    return what + " --from-apache" * _is_from_apache(fields) + " --force" * _is_forced(fields)


def _is_from_apache(fields: dict[str, str]) -> bool:
    return fields.get("fromApache") == "true"


def _is_forced(fields: dict[str, str]) -> bool:
    return fields.get("force") == "true"


async def _begin_anew(parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand) -> None:
    """A person has chosen this one of two masters that began one epoch, or this one although it has handed over: it
    begins a higher one."""
    fields, standing = request.ext_fields, parts.standing.standing
    rival, handed = standing.rival, standing.handed_to
    if (rival is None and handed is None) or fields.get("decided") != "true":
        raise _refused("this broker is a master already")
    _check_as_seen(parts, fields)
    above = max(standing.epochs.highest, int_field(fields, "above", 0, low=0), 0 if handed is None else handed.epoch)
    above, epoch_id = await _take_over(parts, await _on_record(parts), above, "settle")
    named = [each.address for each in (rival, handed) if each is not None]
    others = tuple(dict.fromkeys([*named, *filter(None, fields.get("members", "").split(","))]))
    facts = {"peer": connection.remote_text, "epoch": above + 1, "against": named}
    logger.warning("this master's log was chosen by a request", extra={"event": "admin_settled", **facts})
    connection.reply(request, request.reply(ext_fields={"epoch": str(above + 1)}))
    parts.turns.ask(Promotion(parts.config.broker_role, (), above, others, epoch_id))


async def hear_epoch(
    parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """29406: an epoch has begun at `master`. The answer says which one is the highest here by then, and whose it is.

    yield: a person has decided that its log counts, and gives up what was confirmed here and is not in it.
    """
    fields = request.ext_fields
    epoch, epoch_id = int_field(fields, "epoch", low=1), text_field(fields, "epochId")
    master, file = text_field(fields, "master"), parts.standing
    if text_field(fields, "brokerName") != parts.config.broker_name:
        raise _refused(f"this is {parts.config.broker_name}")
    try:
        if fields.get("yield") == "true":
            facts = {"peer": connection.remote_text, "epoch": epoch, "epoch_id": epoch_id, "master": master}
            logger.warning("confirmed messages given up by a request", extra={"event": "admin_yielded", **facts})
            await asyncio.to_thread(file.change, yields_to=epoch_id)
        epochs = file.standing.epochs
        if parts.follower is None:
            parts.heard(epoch, epoch_id, master, connection.remote_text)
        elif epochs.is_rival(epoch, epoch_id):
            await asyncio.to_thread(file.change, rival=Rival(epoch, epoch_id, master))
        else:
            await asyncio.to_thread(file.hear, epoch, epoch_id)
    except StateFileError as exc:
        raise _refused(f"it can't be put on record: {exc}") from exc
    if parts.follower is not None:
        parts.follower.ha_client.look_again()
    epochs = file.standing.epochs.heard(epoch, epoch_id)
    return request.reply(ext_fields={"epochHighest": str(epochs.highest), "epochId": epochs.highest_id})


async def hold(parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29402: hold back messages for a while, and answer once the slave at an address has all; or, with seconds=0, no
    more.

    handOverAt, epoch: the slave itself asks, whose log ends there, before it begins that epoch.
    """
    if parts.follower is not None:
        raise _refused("this broker is a slave")
    fields = request.ext_fields
    if "handOverAt" in fields:
        to = HandedTo(int_field(fields, "epoch", low=1), text_field(fields, "slave"))
        await parts.hand_over.give(to, long_field(fields, "handOverAt", low=0))
        return request.reply()
    seconds = int_field(fields, "seconds", low=0, high=HOLD_S_MAX)
    catch_up_s = int_field(fields, "catchUpSeconds", HOLD_S_MAX, low=0, high=HOLD_S_MAX)
    if seconds == 0:
        parts.holding.end()
        return request.reply()
    slave = text_field(fields, "slave")
    logger.warning(
        "messages held back by a request",
        extra={"event": "admin_hold", "peer": connection.remote_text, "slave": slave, "seconds": seconds},
    )
    parts.holding.begin(seconds)
    began = time.monotonic()
    if not await parts.holding.until_copied(slave, catch_up_s):
        parts.holding.end()
        raise _refused(f"{slave} did not have all after {time.monotonic() - began:.1f} s; messages are taken again")
    return request.reply(ext_fields={"end": str(parts.store.max_physical_offset)})


async def join(parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29407: have etcd give this store its number, and put group and number on record. The answer has both.

    To ask again changes nothing: a store keeps its number.
    """
    if text_field(request.ext_fields, "brokerName") != parts.config.broker_name:
        raise _refused(f"this is {parts.config.broker_name}")
    if parts.register is None:
        raise _refused("it has no etcdEndpoints: set it, and start this broker again")
    member = parts.member.membership
    try:
        group, number = await parts.register.join(member.store, member.number)
        await asyncio.to_thread(parts.member.joined, group, number)
    except (EtcdError, StateFileError) as exc:
        raise _refused(str(exc)) from exc
    parts.register.group = group
    facts = {"peer": connection.remote_text, "group": group, "member": number}
    logger.warning("joined its group by a request", extra={"event": "admin_joined", **facts})
    return request.reply(ext_fields={"memberGroup": group, "memberNumber": str(number)})


async def failover(parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29408: what etcd has on record of this broker name, and who could take over: FailoverStatus as JSON."""
    config = parts.config
    told = FailoverStatus(
        config.broker_name,
        parts.address,
        is_automatic=config.automatic_failover,
        lease_s=float(config.failover_lease_s),
        in_sync_min=config.min_in_sync_replicas,
        kept_tails=await asyncio.to_thread(kept_tails, parts.address, parts.store.config.root),
        shared_stores=() if parts.register is None or parts.register.is_store_local else (parts.address,),
    )
    if parts.register is None:
        told = dataclasses.replace(told, unknown="it has no etcdEndpoints: an administrator promotes a slave by hand")
    else:
        try:
            began = awake_s()
            view = await parts.register.view()
            told = dataclasses.replace(told, etcd_ms=int((awake_s() - began) * 1000))
            recent, trouble = parts.seen.recent(view.figures, awake_s()), await parts.register.trouble()
            told = status_of(told, view, recent, trouble, parts.seen.unsure)
        except EtcdError as exc:
            told = dataclasses.replace(told, unknown=f"etcd can't be asked: {exc}")
    return request.reply(body=orjson.dumps(told.to_dict()))


async def pause_failover(
    parts: ReplicationParts, connection: ServerConnection, request: RemotingCommand
) -> RemotingCommand:
    """29409: no member of this broker name becomes the master by itself: who, why, until (ms since 1970, for people).

    ends: the pause ends. Refused while the master does not renew, because it would be replaced then, unless force.
    """
    fields = request.ext_fields
    if text_field(fields, "brokerName") != parts.config.broker_name:
        raise _refused(f"this is {parts.config.broker_name}")
    if parts.register is None:
        raise _refused("it has no etcdEndpoints: no master is elected here")
    ends = fields.get("ends") == "true"
    try:
        view = await parts.register.view()
        if ends:
            await _resume(parts.register, view, is_forced=_is_forced(fields))
        else:
            who, why = text_field(fields, "who"), text_field(fields, "why")
            pause = Pause(who, why, int(time.time() * 1000), long_field(fields, "until", 0, low=0))
            await parts.register.pause(view, pause)
    except EtcdError as exc:
        raise _refused(str(exc)) from exc
    facts = {"peer": connection.remote_text, "who": fields.get("who", ""), "why": fields.get("why", "")}
    event = "failover_resumed" if ends else "failover_paused"
    logger.warning("failover paused or resumed by a request", extra={"event": event, **facts})
    return request.reply()


async def _resume(register: Register, view: View, *, is_forced: bool) -> None:
    if view.pause is None:
        raise _refused("failover is not paused")
    if view.beat is not None and not is_forced:
        await asyncio.sleep(FRESH_S)
        if (await register.view()).beat_revision == view.beat_revision:
            owner = "" if view.term is None else view.term.owner
            raise _refused(
                f"{owner} has not renewed in etcd for {FRESH_S:.0f} s: without the pause another broker replaces it. "
                "Start it first, or use force"
            )
    await register.resume(view)


def _refused(why: str) -> BrokerError:
    return BrokerError(ResponseCode.SYSTEM_ERROR, why)
