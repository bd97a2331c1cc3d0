"""SyncAdminClient: AdminClient for threads.

A line names the call of AdminClient that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Unpack

from gantrymq.client.admin.accounts import AccountAdmin
from gantrymq.client.admin.brokers import BrokerAdmin
from gantrymq.client.admin.calls import AdminKeywords
from gantrymq.client.admin.client import AdminClient
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.groups import GroupAdmin
from gantrymq.client.admin.messages import MessageAdmin
from gantrymq.client.admin.name_servers import NameServerAdmin
from gantrymq.client.admin.offsets import OffsetAdmin
from gantrymq.client.admin.succession import SuccessionAdmin
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.client.blocking.base import BlockingLife, BlockingPart, waited_for
from gantrymq.client.results import LostMessage
from gantrymq.message.model import MessageExt


class SyncClusterAdmin(BlockingPart[ClusterAdmin]):
    """`admin.cluster`."""

    info: Final = waited_for(ClusterAdmin.info)
    masters: Final = waited_for(ClusterAdmin.masters)


class SyncBrokerAdmin(BlockingPart[BrokerAdmin]):
    """`admin.brokers`."""

    runtime_info: Final = waited_for(BrokerAdmin.runtime_info)
    config: Final = waited_for(BrokerAdmin.config)
    config_with_origins: Final = waited_for(BrokerAdmin.config_with_origins)
    update_config: Final = waited_for(BrokerAdmin.update_config)
    stats: Final = waited_for(BrokerAdmin.stats)
    clean_expired_queues: Final = waited_for(BrokerAdmin.clean_expired_queues)
    clean_unused_topics: Final = waited_for(BrokerAdmin.clean_unused_topics)
    delete_expired_commit_log: Final = waited_for(BrokerAdmin.delete_expired_commit_log)


class SyncNameServerAdmin(BlockingPart[NameServerAdmin]):
    """`admin.name_servers`."""

    @property
    def addresses(self) -> list[str]:
        """The addresses the AdminClient was given."""
        return self._part().addresses

    config: Final = waited_for(NameServerAdmin.config)
    update_config: Final = waited_for(NameServerAdmin.update_config)
    delete_topic: Final = waited_for(NameServerAdmin.delete_topic)
    get_kv: Final = waited_for(NameServerAdmin.get_kv)
    list_kv: Final = waited_for(NameServerAdmin.list_kv)
    put_kv: Final = waited_for(NameServerAdmin.put_kv)
    delete_kv: Final = waited_for(NameServerAdmin.delete_kv)
    wipe_write_perm: Final = waited_for(NameServerAdmin.wipe_write_perm)
    add_write_perm: Final = waited_for(NameServerAdmin.add_write_perm)


class SyncClientAdmin(BlockingPart[ClientAdmin]):
    """`admin.clients`: the clients at one broker."""

    consumers_at: Final = waited_for(ClientAdmin.consumers_at)
    producers_of_group_at: Final = waited_for(ClientAdmin.producers_of_group_at)
    running_info_json_at: Final = waited_for(ClientAdmin.running_info_json_at)
    running_info_at: Final = waited_for(ClientAdmin.running_info_at)
    producers_at: Final = waited_for(ClientAdmin.producers_at)
    connections_at: Final = waited_for(ClientAdmin.connections_at)
    disconnect_at: Final = waited_for(ClientAdmin.disconnect_at)


class SyncTopicAdmin(BlockingPart[TopicAdmin]):
    """`admin.topics`. Calls that end in _at speak to one broker, the others to all that matter."""

    names: Final = waited_for(TopicAdmin.names)
    route: Final = waited_for(TopicAdmin.route)
    configs_at: Final = waited_for(TopicAdmin.configs_at)
    create_at: Final = waited_for(TopicAdmin.create_at)
    delete_at: Final = waited_for(TopicAdmin.delete_at)
    stats_at: Final = waited_for(TopicAdmin.stats_at)
    groups_at: Final = waited_for(TopicAdmin.groups_at)
    figures_at: Final = waited_for(TopicAdmin.figures_at)
    figures_page_at: Final = waited_for(TopicAdmin.figures_page_at)
    masters: Final = waited_for(TopicAdmin.masters)
    config_at: Final = waited_for(TopicAdmin.config_at)
    create: Final = waited_for(TopicAdmin.create)
    delete: Final = waited_for(TopicAdmin.delete)
    change: Final = waited_for(TopicAdmin.change)
    plan_change: Final = waited_for(TopicAdmin.plan_change)
    offsets: Final = waited_for(TopicAdmin.offsets)
    groups: Final = waited_for(TopicAdmin.groups)
    traffic: Final = waited_for(TopicAdmin.traffic)


class SyncGroupAdmin(BlockingPart[GroupAdmin]):
    """`admin.groups`. Calls that end in _at speak to one broker, the others to all of a cluster."""

    configs_at: Final = waited_for(GroupAdmin.configs_at)
    create_at: Final = waited_for(GroupAdmin.create_at)
    delete_at: Final = waited_for(GroupAdmin.delete_at)
    leases_at: Final = waited_for(GroupAdmin.leases_at)
    set_mode_at: Final = waited_for(GroupAdmin.set_mode_at)
    configs: Final = waited_for(GroupAdmin.configs)
    members: Final = waited_for(GroupAdmin.members)
    leases: Final = waited_for(GroupAdmin.leases)
    set_mode: Final = waited_for(GroupAdmin.set_mode)
    create: Final = waited_for(GroupAdmin.create)
    delete: Final = waited_for(GroupAdmin.delete)


class SyncOffsetAdmin(BlockingPart[OffsetAdmin]):
    """`admin.offsets`. Calls that end in _at speak to one broker, the others to all that matter."""

    max_at: Final = waited_for(OffsetAdmin.max_at)
    min_at: Final = waited_for(OffsetAdmin.min_at)
    search_at: Final = waited_for(OffsetAdmin.search_at)
    get_at: Final = waited_for(OffsetAdmin.get_at)
    set_at: Final = waited_for(OffsetAdmin.set_at)
    stats_at: Final = waited_for(OffsetAdmin.stats_at)
    reset_at: Final = waited_for(OffsetAdmin.reset_at)
    of_queues_at: Final = waited_for(OffsetAdmin.of_queues_at)
    all_at: Final = waited_for(OffsetAdmin.all_at)
    of_group_at: Final = waited_for(OffsetAdmin.of_group_at)
    progress: Final = waited_for(OffsetAdmin.progress)
    plan_reset: Final = waited_for(OffsetAdmin.plan_reset)
    reset: Final = waited_for(OffsetAdmin.reset)
    write: Final = waited_for(OffsetAdmin.write)
    plan_clone: Final = waited_for(OffsetAdmin.plan_clone)
    clone: Final = waited_for(OffsetAdmin.clone)


class SyncMessageAdmin(BlockingPart[MessageAdmin]):
    """`admin.messages`. Calls that end in _at speak to one broker, the others find it."""

    view_at: Final = waited_for(MessageAdmin.view_at)
    query_at: Final = waited_for(MessageAdmin.query_at)
    pull_at: Final = waited_for(MessageAdmin.pull_at)
    send_at: Final = waited_for(MessageAdmin.send_at)
    earliest_store_time_at: Final = waited_for(MessageAdmin.earliest_store_time_at)
    find_by_key: Final = waited_for(MessageAdmin.find_by_key)
    find_by_id: Final = waited_for(MessageAdmin.find_by_id)
    trace: Final = waited_for(MessageAdmin.trace)
    deliveries: Final = waited_for(MessageAdmin.deliveries)
    resend: Final = waited_for(MessageAdmin.resend)
    put_back: Final = waited_for(MessageAdmin.put_back)
    consume_directly_at: Final = waited_for(MessageAdmin.consume_directly_at)

    def read_queue_at(
        self,
        address: str,
        topic: str,
        queue_id: int,
        begin: int,
        end: int | None = None,
        *,
        broker_name: str = "",
        on_lost: Callable[[LostMessage], object] | None = None,
    ) -> Iterator[MessageExt]:
        """The messages of a queue from offset `begin` on, up to before `end` (None: to where it ends now).

        on_lost: called with each that is damaged.
        """
        return self._each(
            self._part().read_queue_at(address, topic, queue_id, begin, end, broker_name=broker_name, on_lost=on_lost)
        )


class SyncAccountAdmin(BlockingPart[AccountAdmin]):
    """`admin.accounts`. Calls that end in _at speak to one broker, the others to several, one after the other."""

    all_at: Final = waited_for(AccountAdmin.all_at)
    version_at: Final = waited_for(AccountAdmin.version_at)
    set_at: Final = waited_for(AccountAdmin.set_at)
    delete_at: Final = waited_for(AccountAdmin.delete_at)
    set_white_addresses_at: Final = waited_for(AccountAdmin.set_white_addresses_at)
    set: Final = waited_for(AccountAdmin.set)
    delete: Final = waited_for(AccountAdmin.delete)
    set_white_addresses: Final = waited_for(AccountAdmin.set_white_addresses)


class SyncSuccessionAdmin(BlockingPart[SuccessionAdmin]):
    """`admin.succession`."""

    view: Final = waited_for(SuccessionAdmin.view)
    known: Final = waited_for(SuccessionAdmin.known)
    promotion: Final = waited_for(SuccessionAdmin.promotion)
    promote: Final = waited_for(SuccessionAdmin.promote)
    switch: Final = waited_for(SuccessionAdmin.switch)
    switch_over: Final = waited_for(SuccessionAdmin.switch_over)
    settlement: Final = waited_for(SuccessionAdmin.settlement)
    settle: Final = waited_for(SuccessionAdmin.settle)
    join: Final = waited_for(SuccessionAdmin.join)
    failover: Final = waited_for(SuccessionAdmin.failover)
    failover_at: Final = waited_for(SuccessionAdmin.failover_at)
    pause_failover: Final = waited_for(SuccessionAdmin.pause_failover)
    resume_failover: Final = waited_for(SuccessionAdmin.resume_failover)


class SyncAdminClient(BlockingLife):
    """Administers a cluster: `with SyncAdminClient("host:port;host:port") as admin: admin.topics.names()`.

    Takes AdminClient's arguments and has its parts, without `calls`. May be shared by threads.
    """

    _client: AdminClient

    def __init__(self, name_servers: str | Sequence[str], **keywords: Unpack[AdminKeywords]) -> None:
        super().__init__(lambda: AdminClient(name_servers, **keywords))
        self.cluster: SyncClusterAdmin = SyncClusterAdmin(lambda: self._client.cluster, self._run)
        self.brokers: SyncBrokerAdmin = SyncBrokerAdmin(lambda: self._client.brokers, self._run)
        self.name_servers: SyncNameServerAdmin = SyncNameServerAdmin(lambda: self._client.name_servers, self._run)
        self.clients: SyncClientAdmin = SyncClientAdmin(lambda: self._client.clients, self._run)
        self.topics: SyncTopicAdmin = SyncTopicAdmin(lambda: self._client.topics, self._run)
        self.groups: SyncGroupAdmin = SyncGroupAdmin(lambda: self._client.groups, self._run)
        self.offsets: SyncOffsetAdmin = SyncOffsetAdmin(lambda: self._client.offsets, self._run)
        self.messages: SyncMessageAdmin = SyncMessageAdmin(lambda: self._client.messages, self._run)
        self.accounts: SyncAccountAdmin = SyncAccountAdmin(lambda: self._client.accounts, self._run)
        self.succession: SyncSuccessionAdmin = SyncSuccessionAdmin(lambda: self._client.succession, self._run)
