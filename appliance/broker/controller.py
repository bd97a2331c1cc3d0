"""One broker: builds its parts bottom-up, runs them, closes them in reverse.

    async with BrokerController(config, store_config) as broker:   # serving when the block begins
        ...

Opening: tables from their files, the store with its recovery, the listeners, the services, registration with the name
servers. Closing: stop accepting, leave the name servers, end the services (which write their files), close the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Sequence, Set
from pathlib import Path
from types import TracebackType
from typing import Self

from appliance.audit.routes import audited
from appliance.broker.access.access_control import access_gate, account_book, may_send
from appliance.broker.access.cost_limits import CreationLimit
from appliance.broker.access.lane_limits import lane_limits
from appliance.broker.delivery.consume_lag import StoreTimes
from appliance.broker.delivery.long_polling import PullRequestHold
from appliance.broker.delivery.schedule import ScheduleMessageService
from appliance.broker.delivery.slow_consumers import SlowConsumerGuard
from appliance.broker.epochs.members import Members
from appliance.broker.epochs.membership import MembershipFile
from appliance.broker.epochs.standing import Rival, StandingFile
from appliance.broker.epochs.turns import Demotion, Promotion, Turn, Turns
from appliance.broker.epochs.young_topics import bring_back
from appliance.broker.failover.master_role import MasterRole
from appliance.broker.failover.mounts import is_local
from appliance.broker.failover.on_record import Seen
from appliance.broker.fast_path import fast_path_of, plain_feed_of, reader_of
from appliance.broker.fast_pulls import FastPulls
from appliance.broker.filters.consumer_filter import ConsumerFilterManager
from appliance.broker.groups.client_connections import ClientConnections
from appliance.broker.groups.clients import ProducerManager
from appliance.broker.groups.consumer_groups import ConsumerManager
from appliance.broker.groups.consumer_offset import ConsumerOffsetManager
from appliance.broker.groups.departures import Departures
from appliance.broker.groups.proxied_clients import ProxiedClients
from appliance.broker.groups.rebalance_lock import RebalanceLockManager
from appliance.broker.groups.subscription_group import SubscriptionGroupManager
from appliance.broker.loading import load
from appliance.broker.open_parts import OpenParts, open_parts
from appliance.broker.pop.handlers import answer_waiting, say_time_up
from appliance.broker.pop.service import PopService
from appliance.broker.processors.by_role import for_slave, for_sync_master
from appliance.broker.processors.pull import answer_held
from appliance.broker.processors.reply import ReplyPushes
from appliance.broker.processors.table import TABLE, without_pulls
from appliance.broker.replication.copy_mark import CopyMark
from appliance.broker.replication.in_sync_file import InSyncFile, InSyncRecord
from appliance.broker.replication.master.hand_over import HandOver
from appliance.broker.replication.master.holding import Holding
from appliance.broker.replication.master.proof import MasterProof
from appliance.broker.replication.master.published_set import PublishedSet
from appliance.broker.replication.master.put_waits import PutWaits
from appliance.broker.replication.master.slaves import SlaveService
from appliance.broker.replication.read_gate import ReadGate
from appliance.broker.replication.slave_guard import SlaveGuard
from appliance.broker.replication.state_frames import StateSource
from appliance.broker.services import services_of
from appliance.broker.status.fast_path import fast_path_status
from appliance.broker.status.stats import BrokerStatsManager
from appliance.broker.status.told_settings import told_settings
from appliance.broker.timer.rolling import Rolling
from appliance.broker.timer.service import TimerService
from appliance.broker.topics.send_target import SendTargets
from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.broker.topics.topic_figures import TopicFigureBook
from appliance.broker.topics.topic_retention import TopicRetention
from appliance.broker.transaction.check import load_ended
from appliance.broker.transaction.ended import EndedHalves
from appliance.errors import StartError
from appliance.failover.own import Doubt
from appliance.process.gc_pacing import collect_all_later, collect_at_start
from appliance.process.json_file import StateFileError
from appliance.process.malloc import MemoryTrimmer
from appliance.process.process_identity import new_session
from appliance.process.tasks import running
from appliance.register.opening import register_of
from appliance.remoting.fast_path import FastPath
from appliance.remoting.lanes import Lanes
from appliance.remoting.route_table import routes_of
from appliance.remoting.server import RemotingServer
from appliance.remoting.tls import server_tls
from appliance.settings.live import LiveConfig
from appliance.settings.loader import live_keys
from appliance.settings.properties_file import PropertiesFile
from appliance.settings.roles import BrokerConfig
from gantrymq.message.topics import SCHEDULE_TOPIC, TIMER_TOPIC
from store.base.config import MessageStoreConfig
from store.base.running_state import RunningFlags
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

VIP_PORT_DISTANCE = 2  # the second door of old clients: listenPort - 2


class BrokerController(OpenParts):
    """Makes the parts of one broker and runs them. Everything but flushing runs on the loop's thread.

    Each part gets what it uses when it is made; handlers get the controller, of which their module's protocol names
    what they use. OpenParts are there once `is_open`. file, ignored: see LiveConfig. port: where to listen when
    listenPort is 0. session: of what runs this broker, in one role after the other. `turns` says when it is to be
    closed, and opened again in another role (life.py).
    """

    def __init__(
        self,
        config: BrokerConfig,
        store_config: MessageStoreConfig,
        *,
        file: PropertiesFile | None = None,
        ignored: Sequence[str] = (),
        port: int = 0,
        session: str = "",
    ) -> None:
        self.session = session or new_session()
        if config.is_slave and store_config.transient_pool_enable:  # as in RocketMQ: a slave appends to its files
            store_config = dataclasses.replace(store_config, transient_pool_enable=False)
        self.config = config
        self.store_config = store_config
        self.live_config = LiveConfig(
            [config, store_config],
            changeable=live_keys(BrokerConfig, MessageStoreConfig),
            file=file,
            ignored=ignored,
            told=lambda: told_settings(config, store_config),
        )
        self.cluster_property = b"CLUSTER\x01" + config.cluster_name.encode()  # of every message
        self.store = MessageStore(store_config, is_copy=config.is_slave)
        self.copy_mark = CopyMark.of(store_config.root)
        self.standing = StandingFile(store_config.root)
        self.member = MembershipFile(store_config.root)
        self.register = register_of(config)
        if self.register is not None:
            self.register.session = self.session if config.automatic_failover else ""
            self.register.lease_s = config.failover_lease_s
        self.seen = Seen()  # what other members say of themselves
        self.in_sync_file = InSyncFile(store_config.root)
        self.turns = Turns()
        self.turn_before: Turn | None = None  # that this process took to open in this role; None: its first role
        self.store_times = StoreTimes(self.store)
        self.stats = BrokerStatsManager(config.cluster_name, totals=self._totals)
        self.accounts = account_book(config, store_config)  # None: no access control
        self.access = access_gate(config, self.accounts, self.store)
        self.fast_path_status = fast_path_status(config, store_config)
        self.memory_trimmer = MemoryTrimmer()
        self.store.parts.dispatcher.plain_feed = plain_feed_of(config, store_config, self.store.parts)
        self.creations = CreationLimit(config)
        folder = store_config.root / "config"
        self._make_topics(folder)
        self._make_groups(folder)
        self._make_delivery(folder)
        self._make_doors(port)
        self.is_open = False
        self._stack = contextlib.AsyncExitStack()

    # -- the rooms ----------------------------------------------------------------------------------------------------

    def _make_topics(self, folder: Path) -> None:
        config = self.config
        self.send_targets = SendTargets(self.stats, self.store, config)
        self.topics = TopicConfigManager(folder / "topics.json", config, on_replaced=self.send_targets.forget)
        self.topic_figures = TopicFigureBook(self.store, self.topics)
        self.topic_retention = TopicRetention(self.store, self.topics)

    def _make_groups(self, folder: Path) -> None:
        config = self.config
        self.groups = SubscriptionGroupManager(folder / "subscriptionGroup.json", config)
        self.offsets = ConsumerOffsetManager(folder / "consumerOffset.json", config)
        self.filters = ConsumerFilterManager(folder / "consumerFilter.json", config)
        self.producers = ProducerManager(may_see=may_send(self.access))
        self.consumers = ConsumerManager(on_group_gone=self.filters.unregister)
        self.client_connections = ClientConnections()
        self.proxied = ProxiedClients()
        self.locks = RebalanceLockManager(life_s=config.queue_lock_life_ms / 1000)
        self.departures = Departures(
            config, self.producers, self.consumers, self.client_connections, self.proxied, self.locks
        )
        self.slow_consumers = SlowConsumerGuard(config, self.groups, self.offsets, self.store, self.store_times)

    def _make_delivery(self, folder: Path) -> None:
        self.hold = PullRequestHold(self.store.properties_of)
        self.pop = PopService(self, folder)
        self.reply_pushes = ReplyPushes()
        self.schedule = ScheduleMessageService(
            self.store,
            self.topics,
            self.store_config,
            folder / "delayOffset.json",
            flush_interval_s=self.config.flush_delay_offset_interval_ms / 1000,
            on_delivered=self.stats.inc_scheduled,
        )
        self.timer = TimerService(
            self.store,
            self.store_config.root / "timer",
            on_delivered=self.stats.inc_topic_put,  # a message for later counts when it reaches its real topic
            on_first=self.topics.create_timer_topic,
        )
        self.timer_rolling = Rolling(self.store, self.timer)

    def _make_doors(self, port: int) -> None:
        config = self.config
        self.lanes = Lanes(lane_limits(config))
        self.tls = server_tls(config)
        guard = SlaveGuard(config, self.tls, self.accounts)
        self.read_gate = ReadGate(self.store, self.hold.wake_all, self._is_waited_for)
        self.slaves = SlaveService(
            self.store,
            config,
            self.standing,
            state=StateSource(self),
            guard=guard,
            gate=self.read_gate,
            on_record=self.in_sync_file,
            member=self.member,
            on_fenced=lambda hello: self.heard(
                hello.epochs.highest, hello.epochs.highest_id, hello.address, hello.address
            ),
            published=self._published(),
            proof=self._proof(),
        )
        self.holding = Holding(self.store, self.slaves, self.turns)
        members = Members(config)
        self.hand_over = HandOver(self.store, self.slaves, self.turns, self.holding, self.standing, members)
        self.master_role = self._master_role()
        self.put_waits = PutWaits(self.store, self.slaves, config, self.store_config)
        self.server = self._listener(config.listen_port or port)
        self.vip_server = self._listener(config.listen_port - VIP_PORT_DISTANCE)

    def _proof(self) -> MasterProof | None:
        if not self.config.automatic_failover or self.config.is_slave:
            return None
        register = register_of(self.config)  # its connections are of the thread that renews
        assert register is not None, "automaticFailover needs etcdEndpoints"
        register.session = self.session
        return MasterProof(
            register,
            self.store,
            self.standing,
            lease_s=self.config.failover_lease_s,
            on_change=self._proof_changed,
            on_other=lambda term: self.heard(term.epoch, term.id, term.owner, "etcd"),
            group=lambda: self.member.membership.group,
        )

    def _master_role(self) -> MasterRole | None:
        if self.slaves.proof is None or self.register is None:
            return None
        return MasterRole(self, self.register, self.slaves, self.slaves.proof, self.holding)

    def _proof_changed(self) -> None:
        """Register and accept messages, or neither; sends that wait have no answer to come."""
        self.slaves.proof_changed()
        proof = self.slaves.proof
        self.hold.closed_for = "" if proof is None or proof.may_register else proof.lacking
        if not self.hold.closed_for:
            self.outer_api.refresh()
            return
        for server in (self.server, self.vip_server):
            server.drop_connections("etcd does not prove that this is the master")

    def _published(self) -> PublishedSet | None:
        if self.register is None or self.config.is_slave:
            return None
        return PublishedSet(
            self.register,
            self.config,
            self.standing,
            on_other=lambda term: self.heard(term.epoch, term.id, term.owner, "etcd"),
            on_shortened=self._shortened,
        )

    def _shortened(self, why: str) -> None:
        """Others of the in-sync set have more of this master's log than it has: one of them becomes the master."""
        epochs = self.standing.standing.epochs
        self.fence(epochs.current, epochs.current_id, "", "etcd", why=why)

    def _listener(self, port: int) -> RemotingServer:
        return RemotingServer(
            self.lanes,
            host=self.config.bind_address,
            port=port,
            on_close=self.departures.connection_closed,
            access=self.access,
            tls=self.tls,
            sockets=self.config,
        )

    # -- life ---------------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port in use; what was asked for until it listens."""
        return self.server.port

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            await self._open(stack)
            if self.turn_before is None:
                collect_at_start()
            else:
                stack.callback(collect_all_later().cancel)
            self._stack = stack.pop_all()
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
        await asyncio.to_thread(load, self)
        stack.callback(self._close_store)
        self.store.start()
        if self.register is not None:
            self.register.is_store_local = await asyncio.to_thread(is_local, self.store_config.root)
        ended = EndedHalves()
        if not self.config.is_slave:
            ended = await asyncio.to_thread(load_ended, self.store, self.offsets)
        stack.push_async_callback(self.lanes.close)
        if not self.config.is_slave and self.standing.standing.epochs.current > 1:
            # Name servers take a master's topics with a new version only, and know this one from another address.
            self.topics.data_version.bump(int(time.time() * 1000))
            if isinstance(self.turn_before, Promotion):
                bring_back(self.store, self.topics, self.config)
        await self.topic_retention.apply()
        if (rival := self.standing.standing.rival) is not None and not self.config.is_slave:
            self.contest(rival, "its own record")
        if not self.config.is_slave:
            self.hand_over.resume()
        port = await self._listen(stack)
        self.open_at(port, ended)
        await stack.enter_async_context(running(*services_of(self)))
        stack.push_async_callback(self._leave)
        routes = routes_of(TABLE, self)
        if self.config.is_slave:
            routes = for_slave(routes)
        elif self.config.is_sync_master:
            routes = for_sync_master(routes, self.slaves.until_tables_are_there)
        routes = audited(routes, self.store_config.root)
        self.server.serve(routes, self._fast_path(has_pulls=True), reader_of)
        self.vip_server.serve(without_pulls(routes), self._fast_path(has_pulls=False), reader_of)
        logger.info(
            "broker is running",
            extra={"event": "broker_serves", "address": self.address, "fast_path": str(self.fast_path_status)},
        )

    def _fast_path(self, *, has_pulls: bool) -> FastPath | None:
        if not self.fast_path_status.is_on:
            return None
        pulls = FastPulls(self) if has_pulls else None
        return fast_path_of(self, pulls, frame_bytes_max=self.server.frame_bytes_max)

    async def _listen(self, stack: contextlib.AsyncExitStack) -> int:
        """Bind the ports; return the broker's own. Who connects is served once the broker is all there."""
        try:
            port = await self.server.open()
            stack.push_async_callback(self.server.close)
            if self.config.listen_port > VIP_PORT_DISTANCE:
                await self.vip_server.open()
                stack.push_async_callback(self.vip_server.close)
            if self.config.has_slave_port:
                after_own = port + 1 if self.config.listen_port else 0
                await self.slaves.open(self.config.ha_listen_port or after_own)
                stack.push_async_callback(self.slaves.close)
        except OSError as exc:
            raise StartError(
                f"can't listen on {self.config.bind_address}:{self.config.listen_port} "
                f"(and {VIP_PORT_DISTANCE} below, and haListenPort with slavesEnable): {exc.strerror}; "
                "choose another listenPort"
            ) from exc
        return port

    def open_at(self, port: int, ended: EndedHalves) -> None:
        """Make the parts that depend on the port, and have the others tell them. ended: see TransactionService."""
        for name, part in vars(open_parts(self, port, ended)).items():
            setattr(self, name, part)  # vars(self).update would make each later access slower: 12 ns, on the hot path
        self.slaves.greeter.broker_address = self.address
        self._wire()
        self.is_open = True

    def _wire(self) -> None:
        """Set the hooks that join parts made one after the other: all there are, but for filter bits."""
        self.store.arrival_listener = self._messages_arrived
        if self.follower is not None:
            self.follower.sink.show()
        if not self.config.is_slave:  # which stores no message of its clients
            self.store.cleaner.ask_before_delete = self.timer_rolling.may_delete
        self.topics.announce_to(self.outer_api.topic_changed, self.topic_sharing.created)
        self.hold.answer_with(functools.partial(answer_held, self, self.access))
        self.pop.hold.answer = functools.partial(answer_waiting, self)
        self.pop.hold.time_up = say_time_up

    def _close_store(self) -> None:
        """Close it, and put on record that all of it is on the disk, if it is. Blocks."""
        self.store.close()
        try:
            if self.store.is_closed_cleanly:
                self.member.closed()
            elif self.store.flags & RunningFlags.SYNC_ERROR:
                self.member.doubted(Doubt.DISK)
        except StateFileError as exc:  # the next boot of the machine counts as if the store had lost something
            logger.error("not recorded", extra={"event": "state_file_not_written", "why": str(exc)})

    async def _leave(self) -> None:
        """Stop accepting and tell the name servers, before anything else ends."""
        await self.outer_api.unregister_all()
        await self.server.close()
        await self.vip_server.close()

    def show_confirmed(self, record: InSyncRecord) -> None:
        """Have a slave's consumers see what is confirmed, with readConfirmedOnly: as a master's do."""
        if self.config.read_confirmed_only:
            self.read_gate.close_behind()
            self.read_gate.show(record.shown_until)

    def heard(self, epoch: int, epoch_id: str, master: str, told_by: str) -> None:
        """Another broker is a master of this log: a later epoch ends this master, an equal one stops both."""
        epochs = self.standing.standing.epochs
        if epoch > epochs.highest:
            self.fence(epoch, epoch_id, master, told_by)
        elif epochs.is_rival(epoch, epoch_id):
            self.contest(Rival(epoch, epoch_id, master), told_by)

    def contest(self, rival: Rival, told_by: str) -> None:
        """Two masters have begun one epoch: nothing is taken or confirmed here until a person has chosen."""
        if self.slaves.fenced_by:
            return
        self.store.parts.state.contest(rival.text)
        self.slaves.fence(rival.number, rival.address)
        own = self.standing.standing.epochs.current_id
        facts = {"epoch": rival.number, "own_id": own, "rival_id": rival.id, "rival": rival.address}
        logger.error(
            "epoch was begun twice: an administrator has to choose",
            extra={"event": "epoch_contested", "told_by": told_by, **facts},
        )
        for server in (self.server, self.vip_server):
            server.drop_connections("the epoch of this master was begun twice")
        try:
            self.standing.change(rival=rival)  # a small file, once
        except StateFileError as exc:  # it is heard of again
            logger.error("not recorded", extra={"event": "state_file_not_written", "why": str(exc)})

    def fence(
        self, epoch: int, epoch_id: str, master: str, told_by: str, *, why: str = "a later epoch has begun"
    ) -> None:
        """A later epoch has begun at `master`: not one more message is taken, confirmed or acknowledged here. why: if
        it is not that.

        Sends whose answers wait lose their connection instead: what becomes of them, the later epoch decides.
        """
        if self.turns.turn is not None:
            return
        self.store.hold(True)
        self.slaves.fence(epoch, master)
        logger.error(
            "master is fenced",
            extra={
                "why": why,
                "event": "master_fenced",
                "epoch": self.standing.standing.epochs.current,
                "later_epoch": epoch,
                "master": master,
                "told_by": told_by,
            },
        )
        for server in (self.server, self.vip_server):
            server.drop_connections("the epoch of this master is over")
        self.turns.ask(Demotion(epoch, master, epoch_id))

    # -- what parts tell each other -----------------------------------------------------------------------------------

    def settings_changed(self, keys: Set[str]) -> None:
        """Take over settings that were changed by request; `keys` are RocketMQ's names."""
        config = self.config
        for name, limits in lane_limits(config).items():
            self.lanes.by_name[name].set_limits(limits)
        self.send_answers.say(config.region_id, config.trace_on)
        if keys & {"autoCreateTopicEnable", "defaultTopicQueueNums"}:
            self.topics.renew_auto_create_template()
        if "traceTopicEnable" in keys:
            self.topics.renew_trace_topic()
        if "brokerPermission" in keys:  # every route changes: the name servers take rows of a new version only
            self.topics.data_version.bump(int(time.time() * 1000))
            self.outer_api.refresh()
            self.send_targets.forget_all()

    def _messages_arrived(self, topic: str, queue_id: int, first_offset: int, tags_codes: Sequence[int]) -> None:
        """The store's arrival listener: called for every put."""
        if topic == SCHEDULE_TOPIC:
            self.schedule.message_arrived(queue_id)
        elif topic == TIMER_TOPIC:
            self.timer.message_arrived()
        self.hold.messages_arrived(topic, queue_id, first_offset, tags_codes)

    def _is_waited_for(self, topic: str) -> bool:
        """Whether `_messages_arrived` would do anything for a message of the topic."""
        return bool(self.hold.held or self.hold.topics or topic in (SCHEDULE_TOPIC, TIMER_TOPIC))

    def _totals(self) -> tuple[int, int]:
        """Records stored, of any kind, and messages read, for the daily totals: RocketMQ's store counts them."""
        return self.store.stats.put_times, self.store.stats.get_transferred
