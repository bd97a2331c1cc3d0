"""`gantry admin ha switchover --unclean`: a member that lacks acknowledged messages takes over: the others are lost.

Nothing may be lost but what the administrator accepts by number, as far as any member tells, or has told etcd before it
was lost. What none can tell speaks against it, too, and so does a log of another epoch than the one on record. The
switch counts only for the term and the beat that were read before they were asked: a master that comes back ends it,
and goes on. The member compares all that again, and waits for the lease, so two masters never serve at once.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from appliance.broker.processors.replication import HOPELESS
from appliance.cli.admin.command import Shown
from appliance.cli.admin.ha.looking import FRESH_S, Seen, has_renewed, look
from appliance.failover.view import Switch
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.failover import FailoverMember, FailoverStatus
from gantrymq.client.admin.members import Member
from gantrymq.client.admin.promotion import Promotion
from gantrymq.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Checked:
    """Nothing that is left speaks against this switch. lease_s: so long its target may have to wait."""

    seen: Seen
    switch: Switch
    lease_s: float
    shown: Shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--unclean", action="store_true", help="when the master is lost: a member that lacks acknowledged messages"
    )
    parser.add_argument(
        "--accept-loss", type=int, metavar="BYTES", help="with --unclean: so many bytes of the log may be missing"
    )
    parser.add_argument(
        "--accept-unknown", action="store_true", help="with --unclean: although more may be missing than is known"
    )
    parser.add_argument(
        "--accept-epoch",
        type=int,
        default=0,
        metavar="EPOCH",
        help="with --unclean: although its log ends in this epoch, and a later one is on record",
    )


def is_asked(arguments: argparse.Namespace) -> bool:
    """ConfigError for options that do not belong together."""
    if arguments.unclean and (arguments.to is None or arguments.accept_loss is None):
        raise ConfigError("--unclean needs --to HOST:PORT and --accept-loss BYTES")
    accepted = arguments.accept_loss is not None, arguments.accept_unknown, arguments.accept_epoch
    if not arguments.unclean and any(accepted):
        raise ConfigError("what begins with --accept needs --unclean: otherwise nothing is lost")
    return bool(arguments.unclean)


async def checked(admin: AdminClient, arguments: argparse.Namespace, status: FailoverStatus) -> Checked:
    """ConfigError with all that speaks against it."""
    target = target_at(arguments.to, status)
    seen = await look(admin, arguments)
    view = seen.view
    assert view.term is not None  # as the status says
    promotion = await admin.succession.promotion(arguments.broker, arguments.to)
    left = promotion.left_with(accept_unknown=arguments.accept_unknown, accepted_bytes=arguments.accept_loss)
    left += against(seen, promotion.slave, arguments)
    if left:
        raise ConfigError(f"{'; '.join(left)}. Nothing was changed")
    if await has_renewed(seen):
        raise ConfigError(f"{status.master} renews in etcd, so it is there: leave --unclean out, or stop it first")
    seen_at = view.term.epoch, view.term_revision, view.beat_revision
    accepted = arguments.accept_unknown, arguments.accept_epoch
    switch = Switch(str(uuid.uuid4()), target.number, False, arguments.accept_loss, *seen_at, *accepted)
    lease_s = max(status.lease_s, 0.0 if view.beat is None else view.beat.lease_s)
    return Checked(seen, switch, lease_s, _shown(arguments, status, promotion))


def against(seen: Seen, slave: Member, arguments: argparse.Namespace) -> Iterator[str]:
    """What etcd has on record against it, and the state of its log: of which there is no number to accept."""
    term, epoch, epoch_id = seen.view.term, slave.log_epoch, slave.info.get("epochId", "")
    assert term is not None
    if not term.is_of(epoch, epoch_id) and not 0 < epoch == arguments.accept_epoch:
        yield (
            f"etcd has epoch {term.epoch} ({term.id}) on record, and the log of {slave.address} ends in epoch {epoch} "
            f"({epoch_id}): its length does not tell what it lacks (--accept-epoch {epoch})"
        )
    if slave.info.get("slaveState") in HOPELESS:
        yield f"the log of {slave.address} is not known to be its master's: {slave.state}"
    there = {each.address for each in seen.members if each.answers}
    for _, told in seen.view.figures.values():
        lacks = told.log_end - slave.end
        if told.address not in there and lacks > arguments.accept_loss:
            yield f"{told.address} has reported {lacks:,} bytes more of the log to etcd than {slave.address} has"


def target_at(address: str, status: FailoverStatus) -> FailoverMember:
    """ConfigError for one that can't be it. The master on record can, once it is a slave that refuses its role."""
    target = next((each for each in status.members if each.address == address), None)
    if target is None or (target.is_master and not target.refusal):
        raise ConfigError(f"{address} is " + ("no member that has joined" if target is None else "the master"))
    if not target.has_told:
        raise ConfigError(f"{address} can't become the master: {target.refusal}")
    if not target.refusal:
        raise ConfigError(f"{address} lacks nothing that was acknowledged: leave --unclean out, or wait for the lease")
    return target


def _shown(arguments: argparse.Namespace, status: FailoverStatus, promotion: Promotion) -> Shown:
    lacks = max(promotion.bytes_of.values(), default=0)
    document = {
        "broker": arguments.broker,
        "from": status.master,
        "to": arguments.to,
        "end": promotion.slave.end,
        "missingBytes": lacks,
        "obstacles": promotion.obstacles,
    }
    before = [] if status.switch is None else [f"the switchover to {status.switch.address} that was asked for is over"]
    lines = [
        *before,
        f"{status.master} has not renewed for {FRESH_S:.0f} s, and {arguments.to} takes over without what it lacks",
        f"its log ends at {promotion.slave.end:,}, and lacks {lacks:,} bytes or more",
        *(f"against it: {obstacle}" for obstacle in promotion.obstacles),
    ]
    return Shown(document, lines)
