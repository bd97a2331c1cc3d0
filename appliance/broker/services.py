"""What runs as long as a broker does: objects with `async def run()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from appliance.broker.cluster.address_server import AddressServer, address_server_url
from appliance.broker.epochs.members import Members
from appliance.broker.groups.housekeeping import ClientHousekeeping
from appliance.broker.replication.master.newest_offsets import NewestOffsets
from appliance.broker.replication.master.old_masters import OldMasters
from appliance.broker.status.watermarks import WatermarkLog
from appliance.process.gc_pacing import GcPacer
from appliance.process.tasks import Service

if TYPE_CHECKING:  # it calls what is here
    from appliance.broker.controller import BrokerController


def services_of(parts: BrokerController) -> list[Service]:
    """All of a broker. They end in this order."""
    services: list[Service] = [
        parts.store,
        *_of_role(parts),
        parts.topics,
        parts.groups,
        parts.offsets,
        parts.filters,
        parts.topic_retention,
        parts.hold,
        parts.pop,
        parts.pop.journal,
        parts.stats,
        ClientHousekeeping(parts.producers, parts.consumers, parts.locks),
        parts.slow_consumers,
        WatermarkLog(parts.lanes, parts.store),
        GcPacer(),
        parts.memory_trimmer,
        parts.server,
        parts.vip_server,
        parts.outer_api,
    ]
    url = address_server_url(parts.config)
    if url is not None:
        services.append(AddressServer(url, parts.outer_api.follow))
    return services + [service for service in (parts.accounts, parts.tls) if service is not None]


def _of_role(parts: BrokerController) -> list[Service]:
    """What only a master does, or only a slave."""
    if parts.follower is not None:
        candidate = parts.follower.candidate
        always: list[Service] = [parts.follower.ha_client, parts.follower.synchronize, parts.follower.sink]
        return always if candidate is None else [*always, candidate]
    return [
        parts.transaction_checks,  # before the offsets: when both end, theirs are written with its progress
        parts.schedule,
        parts.timer,
        parts.pop.hold,
        parts.pop.redelivery,
        parts.pop.moving,
        parts.pop.routes,
        parts.topic_sharing,
        parts.slaves,
        parts.hand_over,
        NewestOffsets(parts.config, parts.offsets, parts.slaves, parts.topics.configs, parts.store.max_offset),
        *([parts.slaves.proof] if parts.slaves.proof is not None else []),
        *([parts.master_role] if parts.master_role is not None else []),
        OldMasters(parts.slaves, parts.standing, Members(parts.config), parts.outer_api.refresh),
    ]
