"""One broker: builds its parts bottom-up, runs them, closes them in reverse.

    async with BrokerController(config, store_config) as broker:   # serving when the block begins
        ...

Opening: tables from their files, the store with its recovery, the listeners, the services, registration with the name
servers. Closing: stop accepting, leave the name servers, end the services (which write their files), close the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import time
from collections.abc import Mapping, Sequence, Set
from types import TracebackType
from typing import Self

from appliance.acl.account_file import AccountFileError
from appliance.broker.access.access_control import access_gate, account_book, may_send, may_still_pull
from appliance.broker.access.cost_limits import CreationLimit
from appliance.broker.cluster.address_server import AddressServer, address_server_url
from appliance.broker.cluster.outer_api import BrokerOuterApi
from appliance.broker.cluster.slaves import SlaveService
from appliance.broker.delivery.answers import SendAnswers
from appliance.broker.delivery.consume_lag import StoreTimes
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.delivery.offset_moved import OffsetMovedEvents
from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.delivery.slow_consumers import SlowConsumerGuard
from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.broker.groups.client_connections import ClientConnections
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.housekeeping import ClientHousekeeping
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.processors import HANDLERS, VIP_HANDLERS
from appliance.broker.processors.pull import pull_again
from appliance.broker.processors.reply import ReplyPushes
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.status.told_settings import told_settings
from appliance.broker.status.watermarks import WatermarkLog
from appliance.broker.timer.rolling import Rolling
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.send_target import SendTargets
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_retention import TopicRetention
from appliance.broker.topics.topic_sharing import TopicSharing
from appliance.broker.transaction.check import TransactionCheckService
from appliance.broker.transaction.service import TransactionService
from appliance.errors import StartError
from appliance.process.gc_pacing import GcPacer
from appliance.process.malloc import MemoryTrimmer
from appliance.process.tasks import running
from appliance.remoting.connection import ServerConnection
from appliance.remoting.lane import QUEUED_MESSAGES_BYTES_MAX, LaneLimits, Route
from appliance.remoting.lanes import Lanes
from appliance.remoting.pull_request import PullRequest
from appliance.remoting.server import RemotingServer
from appliance.remoting.tls import server_tls
from appliance.settings.changeable import CHANGEABLE
from appliance.settings.live import LiveConfig
from appliance.settings.properties_file import PropertiesFile
from appliance.settings.roles import BrokerConfig
from gantrymq.message.ids import encode_host
from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from gantrymq.remoting.codes import ResponseCode
from gantrymq.remoting.command import RemotingCommand
from store.base.config import MessageStoreConfig
from store.message_store import MessageStore
from store.startup.format_stamp import STORE, check_format

logger = logging.getLogger(__name__)

VIP_PORT_DISTANCE = 2  # the second door of old clients: listenPort - 2


class BrokerController:
    """All parts of one broker under names that the processors use. Everything but flushing runs on the loop's
    thread. file, ignored: see LiveConfig."""

    def __init__(
        self,
        config: BrokerConfig,
        store_config: MessageStoreConfig,
        *,
        file: PropertiesFile | None = None,
        ignored: Sequence[str] = (),
    ) -> None:
        self.config = config
        self.store_config = store_config
        self.live_config = LiveConfig(
            [config, store_config],
            changeable=CHANGEABLE,
            file=file,
            ignored=ignored,
            told=lambda: told_settings(config, store_config),
        )
        folder = store_config.root / "config"
        self.topics = TopicConfigManager(folder / "topics.json", config)
        self.groups = SubscriptionGroupManager(folder / "subscriptionGroup.json", config)
        self.offsets = ConsumerOffsetManager(folder / "consumerOffset.json", config)
        self.filters = ConsumerFilterManager(folder / "consumerFilter.json", config)
        self.producers = ProducerManager()
        self.consumers = ConsumerManager(notify_enable=config.notify_consumer_ids_changed_enable)
        self.consumers.on_group_gone = self.filters.unregister
        self.client_connections = ClientConnections()
        self.locks = RebalanceLockManager(life_s=config.queue_lock_life_ms / 1000)
        self.store = MessageStore(store_config)
        self.store_times = StoreTimes(self.store)
        self.reply_pushes = ReplyPushes()
        self.offset_moved = OffsetMovedEvents(self.store)
        self.slow_consumers = SlowConsumerGuard(config, self.groups, self.offsets, self.store, self.store_times)
        self.schedule = ScheduleMessageService(
            self.store,
            self.topics,
            store_config,
            folder / "delayOffset.json",
            flush_interval_s=config.flush_delay_offset_interval_ms / 1000,
        )
        self.transactions = TransactionService(self.store)
        self.timer = TimerService(self.store, store_config.root / "timer")
        self.timer_rolling = Rolling(self.store, self.timer)
        self.topic_retention = TopicRetention(
            self.store, self.topics, interval_s=lambda: max(config.topic_retention_interval_ms, 100) / 1000
        )
        self.hold = PullRequestHold(self._pull_again, self.store.properties_of)
        self.stats = BrokerStatsManager(config.cluster_name, totals=self._totals)
        self.creations = CreationLimit(config)
        self.send_targets = SendTargets(self.stats, self.store, config)
        self.topics.on_replaced = self.send_targets.forget
        self.transaction_checks = TransactionCheckService(
            self.transactions,
            self.store,
            self.topics,
            self.offsets,
            self.producers,
            self.stats,
            config,
            store_config,
        )
        self.accounts = account_book(config, store_config)  # None: nobody is asked for one
        self.access = access_gate(config, self.accounts, self.store)
        self.producers.may_see = may_send(self.access)
        self.lanes = Lanes(self, lane_limits(config))
        self.slaves = SlaveService(self.store, config)
        self.tls = server_tls(config)
        self.server = self._listener(HANDLERS, config.listen_port)
        self.vip_server = self._listener(VIP_HANDLERS, config.listen_port - VIP_PORT_DISTANCE)
        self.cluster_property = b"CLUSTER\x01" + config.cluster_name.encode()
        self.send_gate = config.start_accept_send_timestamp or None  # ms; sends before it are refused
        # known once the port is: the address is part of every message id
        self.port = config.listen_port
        self.address = ""
        self.store_host = b""
        self.send_answers: SendAnswers
        self.outer_api: BrokerOuterApi
        self.topic_sharing: TopicSharing
        self._stack = contextlib.AsyncExitStack()

    def _listener(self, handlers: Mapping[int, Route], port: int) -> RemotingServer:
        return RemotingServer(
            handlers,
            self.lanes,
            host=self.config.bind_address,
            port=port,
            on_close=self._connection_closed,
            access=self.access,
            tls=self.tls,
            sockets=self.config,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            await self._open(stack)
            self._stack = stack.pop_all()
        gc.collect()
        gc.freeze()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, value, traceback)

    async def run(self) -> None:
        """Serve until cancelled."""
        async with self:
            await asyncio.Event().wait()

    async def _open(self, stack: contextlib.AsyncExitStack) -> None:
        await asyncio.to_thread(self._load)
        stack.callback(self.store.close)
        self.store.start()
        await asyncio.to_thread(self.transaction_checks.load)
        self.store.arrival_listener = self._messages_arrived
        self.schedule.on_delivered = self.stats.inc_scheduled
        self.timer.on_delivered(self._count_delivered)
        self.timer.on_first = self.topics.create_timer_topic
        self.store.ask_before_delete(self.timer_rolling.may_delete)
        stack.push_async_callback(self.lanes.close)
        await self.topic_retention.apply()
        await self._listen(stack)
        self.outer_api = BrokerOuterApi(self)
        self.topics.on_change = self.outer_api.topic_changed
        self.topic_sharing = TopicSharing(self)
        self.topics.on_created_by_send = self.topic_sharing.created
        await stack.enter_async_context(
            running(
                self.store,
                self.transaction_checks,  # before the offsets: when both end, theirs are written with its progress
                self.topics,
                self.groups,
                self.offsets,
                self.filters,
                self.schedule,
                self.timer,
                self.topic_retention,
                self.hold,
                self.stats,
                ClientHousekeeping(self.producers, self.consumers, self.locks),
                self.slow_consumers,
                WatermarkLog(self.lanes, self.store),
                GcPacer(),
                MemoryTrimmer(),
                self.server,
                self.vip_server,
                *([self.accounts] if self.accounts is not None else []),
                self.outer_api,
                self.topic_sharing,
                self.slaves,
                *self._address_server(),
                *([self.tls] if self.tls is not None else []),
            )
        )
        stack.push_async_callback(self._leave)
        logger.info("broker serves", extra={"event": "broker_serves", "address": self.address})

    def _load(self) -> None:
        """Read the tables and recover the store. Blocking."""
        check_format(self.store_config.root, STORE)  # before its tables are read: they may be newer, too
        if self.accounts is not None:
            try:
                self.accounts.load()
            except AccountFileError as exc:
                raise StartError(f"accounts can't be read: {exc}") from exc
        self.topics.load()
        self.groups.load()
        self.offsets.load()
        self.filters.load()
        self._set_filter_bitmaps()
        self.store.load()
        self.schedule.load()
        self.timer.load()

    def _set_filter_bitmaps(self) -> None:
        """From here on, and while the store recovers, messages get filter bits, if that is wanted."""
        if not self.config.calc_filter_bitmap_enable:
            return
        if self.store_config.consume_queue_ext_enable:
            self.store.bitmap_of = self.filters.bitmap_of
        else:
            logger.warning(
                "enableCalcFilterBitMap has no effect without enableConsumeQueueExt: there is no place for the bits",
                extra={"event": "filter_bitmap_ignored"},
            )

    async def _listen(self, stack: contextlib.AsyncExitStack) -> None:
        """Bind the ports; from then on the broker's address is known."""
        try:
            self.port = await self.server.open()
            stack.push_async_callback(self.server.close)
            if self.config.listen_port > VIP_PORT_DISTANCE:
                await self.vip_server.open()
                stack.push_async_callback(self.vip_server.close)
            if self.config.slaves_enable:
                after_own = self.port + 1 if self.config.listen_port else 0
                await self.slaves.open(self.config.ha_listen_port or after_own)
                stack.push_async_callback(self.slaves.close)
        except OSError as exc:
            raise StartError(
                f"can't listen on {self.config.bind_address}:{self.config.listen_port} "
                f"(and {VIP_PORT_DISTANCE} below, and haListenPort with slavesEnable): {exc.strerror}; "
                "choose another listenPort"
            ) from exc
        host = self.config.advertised_address_host
        self.address = f"{host}:{self.port}"
        self.store_host = self.transactions.store_host = encode_host(host, self.port)
        self.offset_moved.store_host = self.store_host
        self.send_answers = SendAnswers(self.config.region_id, self.config.trace_on, self.store_host)

    def _address_server(self) -> list[AddressServer]:
        url = address_server_url(self.config)
        return [] if url is None else [AddressServer(url, self.outer_api.follow)]

    async def _leave(self) -> None:
        """Stop accepting and tell the name servers, before anything else ends."""
        await self.outer_api.unregister_all()
        await self.server.close()
        await self.vip_server.close()

    def settings_changed(self, keys: Set[str]) -> None:
        """Take over settings that were changed by request; `keys` are RocketMQ's names."""
        for name, limits in lane_limits(self.config).items():
            self.lanes.by_name[name].set_limits(limits)
        self.send_gate = self.config.start_accept_send_timestamp or None
        self.send_answers = SendAnswers(self.config.region_id, self.config.trace_on, self.store_host)
        if keys & {"autoCreateTopicEnable", "defaultTopicQueueNums"}:
            self.topics.renew_auto_create_template()
        if "brokerPermission" in keys:  # every route changes: the name servers take rows of a new version only
            self.topics.data_version.bump(int(time.time() * 1000))
            self.outer_api.refresh()
            self.send_targets.forget_all()

    def _pull_again(self, connection: ServerConnection, request: RemotingCommand | PullRequest) -> None:
        """Answer a pull that waited."""
        if may_still_pull(self.access, connection, request):
            pull_again(self, connection, request)
        else:
            refusal = "the account may not read this topic any more"
            connection.reply(request, request.reply(ResponseCode.NO_PERMISSION, refusal))

    # -- what parts tell each other -----------------------------------------------------------------------------------

    def _messages_arrived(self, topic: str, queue_id: int, first_offset: int, tags_codes: Sequence[int]) -> None:
        if topic == SCHEDULE_TOPIC:
            self.schedule.message_arrived(queue_id)
        elif topic == TIMER_TOPIC:
            self.timer.message_arrived()
        self.hold.messages_arrived(topic, queue_id, first_offset, tags_codes)

    def _connection_closed(self, connection: ServerConnection) -> None:
        self.producers.connection_closed(connection)
        groups = self.consumers.connection_closed(connection)
        gone = self.client_connections.closed(connection)
        grace_s = self.config.queue_lock_grace_ms / 1000
        if grace_s >= 0:
            holders = [client_id for client_id in gone if self.locks.client_gone(client_id, grace_s)]
            if holders:
                self.consumers.notify_after(grace_s, groups)

    def _totals(self) -> tuple[int, int]:
        """Records stored, of any kind, and messages read, for the daily figures: RocketMQ's store counts them."""
        return self.store.stats.put_times, self.store.stats.get_transferred

    def _count_delivered(self, topic: str, count: int, size_bytes: int) -> None:
        """Messages that had a time of their own count when they reach their real topic."""
        self.stats.inc_topic_put(topic, count, size_bytes)


def lane_limits(config: BrokerConfig) -> dict[str, LaneLimits]:
    """Capacity and longest wait of each lane, as RocketMQ's thread pools have them."""

    def limited(wait_ms: int) -> int | None:
        return wait_ms if config.fast_failure_enable else None

    return {
        "send": LaneLimits(config.send_capacity, limited(config.send_wait_ms), QUEUED_MESSAGES_BYTES_MAX),
        "pull": LaneLimits(config.pull_capacity, limited(config.pull_wait_ms)),
        "heartbeat": LaneLimits(config.heartbeat_capacity, limited(config.heartbeat_wait_ms)),
        "transaction": LaneLimits(config.transaction_capacity, limited(config.transaction_wait_ms)),
        "consumer": LaneLimits(config.consumer_capacity),
        "client": LaneLimits(config.client_capacity),
        "reply": LaneLimits(config.reply_capacity, None, QUEUED_MESSAGES_BYTES_MAX),
        "query": LaneLimits(config.query_capacity),
        "admin": LaneLimits(config.admin_capacity),
    }
