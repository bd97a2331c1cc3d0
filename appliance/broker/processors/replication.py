"""Change of the master by hand: what `gantry admin promote` and `switchover` ask brokers of GantryMQ for.

A switch-over is three requests of one tool: the master holds back messages until a slave has all of them, that slave is
promoted, and the master of before hears of it on the port for slaves. If the tool dies in between, the master goes on
when its hold ends.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from appliance.broker.epochs.standing import StandingFile
from appliance.broker.epochs.turns import Promotion, Turns
from appliance.broker.replication.ha_client import HaState
from appliance.broker.replication.master.holding import HOLD_S_MAX, Holding
from appliance.errors import BrokerError
from appliance.remoting.header_fields import int_field, text_field
from appliance.settings.replication import MASTER_ROLES
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.message_store import MessageStore

if TYPE_CHECKING:
    from appliance.broker.replication.follower import Follower
    from appliance.remoting.connection import ServerConnection

logger = logging.getLogger(__name__)

HOPELESS = (HaState.DIVERGED, HaState.CUTTING, HaState.JOINING)


@dataclass(frozen=True, slots=True)
class Parts:
    """What these handlers use of the broker."""

    store: MessageStore
    follower: Follower | None
    standing: StandingFile
    turns: Turns
    holding: Holding


async def promote(parts: Parts, connection: ServerConnection, request: RemotingCommand) -> None:
    """29401: this slave becomes the master. epoch, end: as the asking person saw them; anything else is refused.

    planned: the master holds back messages, and the end is its own. force: though the master answers.
    """
    fields = request.ext_fields
    follower = parts.follower
    if follower is None:
        raise _refused("this broker is a master already")
    epochs, end = parts.standing.standing.epochs, parts.store.max_physical_offset
    role = fields.get("brokerRole") or parts.standing.standing.master_role or MASTER_ROLES[0]
    if role not in MASTER_ROLES:
        raise _refused(f"brokerRole={role}: use one of {', '.join(MASTER_ROLES)}")
    if text_field(fields, "epoch") != str(epochs.highest) or text_field(fields, "end") != str(end):
        raise _refused(f"it has changed meanwhile: the highest epoch is {epochs.highest}, the log ends at {end}")
    client = follower.ha_client
    is_forced, is_planned = fields.get("force") == "true", fields.get("planned") == "true"
    if client.state in HOPELESS and not is_forced:
        raise _refused(f"this log is not known to be its master's: {client.state}")
    if not is_planned and not is_forced and await follower.synchronize.master_answers():
        raise _refused("its master answers: use a switch-over, or stop the master first")
    if is_planned and not follower.sink.has_tables:
        raise _refused("topics and groups that the master told of have not come yet: ask again")
    untold = tuple(dict.fromkeys([client.master_address, *parts.standing.standing.untold]))
    logger.warning(
        "promotion by request",
        extra={
            "event": "admin_promotion",
            "peer": connection.remote_text,
            "epoch": epochs.highest + 1,
            "physical_offset": end,
            "planned": is_planned,
            "forced": is_forced,
        },
    )
    # The answer first: the broker closes its connections for the turn, and what was written until then still goes out.
    connection.reply(request, request.reply(ext_fields={"epoch": str(epochs.highest + 1), "brokerRole": role}))
    parts.turns.ask(Promotion(role, tuple(filter(None, untold))))
    return


async def hold(parts: Parts, connection: ServerConnection, request: RemotingCommand) -> RemotingCommand:
    """29402: hold back messages for a while, and answer once the slave at an address has all; or, with seconds=0, no
    more."""
    if parts.follower is not None:
        raise _refused("this broker is a slave")
    fields = request.ext_fields
    seconds = int_field(fields, "seconds", low=0, high=HOLD_S_MAX)
    catch_up_s = int_field(fields, "catchUpSeconds", HOLD_S_MAX, low=0, high=HOLD_S_MAX)
    if seconds == 0:
        parts.holding.end()
        return request.reply()
    slave = text_field(fields, "slave")
    logger.warning(
        "messages held back by request",
        extra={"event": "admin_hold", "peer": connection.remote_text, "slave": slave, "seconds": seconds},
    )
    parts.holding.begin(seconds)
    began = time.monotonic()
    if not await parts.holding.until_copied(slave, catch_up_s):
        parts.holding.end()
        raise _refused(f"{slave} did not have all after {time.monotonic() - began:.1f} s; messages are taken again")
    return request.reply(ext_fields={"end": str(parts.store.max_physical_offset)})


def _refused(why: str) -> BrokerError:
    return BrokerError(ResponseCode.SYSTEM_ERROR, why)
