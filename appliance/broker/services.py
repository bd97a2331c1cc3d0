"""What runs as long as a broker does: objects with `async def run()`."""

from __future__ import annotations

from typing import Protocol

from appliance.acl.account_book import AccountBook
from appliance.broker.cluster.address_server import AddressServer, address_server_url
from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.delivery.slow_consumers import SlowConsumerGuard
from appliance.broker.epochs.members import Members
from appliance.broker.epochs.standing import StandingFile
from appliance.broker.failover.master_role import MasterRole
from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.housekeeping import ClientHousekeeping
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.pop.service import PopService
from appliance.broker.replication.follower import Follower
from appliance.broker.replication.master.hand_over import HandOver
from appliance.broker.replication.master.newest_offsets import NewestOffsets
from appliance.broker.replication.master.old_masters import OldMasters
from appliance.broker.replication.master.slaves import SlaveService
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.status.watermarks import WatermarkLog
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_retention import TopicRetention
from appliance.broker.topics.topic_sharing import TopicSharing
from appliance.broker.transaction.check import TransactionCheckService
from appliance.process.gc_pacing import GcPacer
from appliance.process.malloc import MemoryTrimmer
from appliance.process.tasks import Service
from appliance.remoting.lanes import Lanes
from appliance.remoting.server import RemotingServer
from appliance.remoting.tls import ServerTls
from appliance.settings.roles import BrokerConfig
from store.message_store import MessageStore


class ServiceParts(Protocol):
    """Those that run, and what those use that are made here."""

    config: BrokerConfig
    store: MessageStore
    standing: StandingFile
    stats: BrokerStatsManager
    accounts: AccountBook | None
    tls: ServerTls | None
    topics: TopicConfigManager
    topic_retention: TopicRetention
    groups: SubscriptionGroupManager
    offsets: ConsumerOffsetManager
    filters: ConsumerFilterManager
    producers: ProducerManager
    consumers: ConsumerManager
    locks: RebalanceLockManager
    slow_consumers: SlowConsumerGuard
    hold: PullRequestHold
    pop: PopService
    schedule: ScheduleMessageService
    timer: TimerService
    lanes: Lanes
    memory_trimmer: MemoryTrimmer
    slaves: SlaveService
    hand_over: HandOver
    master_role: MasterRole | None
    server: RemotingServer
    vip_server: RemotingServer
    outer_api: BrokerOuterApi
    topic_sharing: TopicSharing
    transaction_checks: TransactionCheckService
    follower: Follower | None


def services_of(parts: ServiceParts) -> list[Service]:
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


def _of_role(parts: ServiceParts) -> list[Service]:
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
