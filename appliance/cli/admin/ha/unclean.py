"""`gantry admin ha switchover --unclean`: a member that lacks acknowledged messages takes over: the others are lost.

Nothing may be lost but what the administrator accepts by number, as far as any member that answers can tell. What none
can tell speaks against it, too. The switch counts only for the term and the beat that were read before they were asked:
a master that comes back ends it, and goes on. The member waits for the lease, so two masters never serve at once.
"""

from __future__ import annotations

import argparse
import uuid
from dataclasses import dataclass

from appliance.cli.admin.command import Shown
from appliance.cli.admin.ha.looking import FRESH_S, Seen, has_renewed, look
from appliance.failover.view import Switch
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.failover import FailoverMember, FailoverStatus
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


def is_asked(arguments: argparse.Namespace) -> bool:
    """ConfigError for options that do not belong together."""
    if arguments.unclean and (arguments.to is None or arguments.accept_loss is None):
        raise ConfigError("--unclean needs --to HOST:PORT and --accept-loss BYTES")
    if not arguments.unclean and (arguments.accept_loss is not None or arguments.accept_unknown):
        raise ConfigError("--accept-loss and --accept-unknown need --unclean: otherwise nothing is lost")
    return bool(arguments.unclean)


async def checked(admin: AdminClient, arguments: argparse.Namespace, status: FailoverStatus) -> Checked:
    """ConfigError with all that speaks against it."""
    target = _target(arguments.to, status)
    seen = await look(admin, arguments)
    view = seen.view
    assert view.term is not None  # as the status says
    promotion = await admin.succession.promotion(arguments.broker, arguments.to)
    left = promotion.left_with(accept_unknown=arguments.accept_unknown, accepted_bytes=arguments.accept_loss)
    if left:
        raise ConfigError(f"{'; '.join(left)}. Nothing was changed")
    if await has_renewed(seen):
        raise ConfigError(f"{status.master} renews in etcd, so it is there: leave --unclean out, or stop it first")
    seen_at = view.term.epoch, view.term_revision, view.beat_revision
    switch = Switch(str(uuid.uuid4()), target.number, False, arguments.accept_loss, *seen_at)
    lease_s = max(status.lease_s, 0.0 if view.beat is None else view.beat.lease_s)
    return Checked(seen, switch, lease_s, _shown(arguments, status, promotion))


def _target(address: str, status: FailoverStatus) -> FailoverMember:
    target = next((each for each in status.members if each.address == address), None)
    if target is None or target.is_master:
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
    lines = [
        f"{status.master} has not renewed for {FRESH_S:.0f} s, and {arguments.to} takes over without what it lacks",
        f"its log ends at {promotion.slave.end:,}, and lacks {lacks:,} bytes or more",
        *(f"against it: {obstacle}" for obstacle in promotion.obstacles),
    ]
    return Shown(document, lines)
