"""Admin calls about consumer groups: settings and members. What clients say of themselves stands in clients.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gantrymq.client.admin.calls import AdminCalls, ask_each, tell_each
from gantrymq.client.admin.clients import ClientAdmin
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.errors import ConfigError, GantryError, ResponseError
from gantrymq.message.topics import dlq_topic, retry_topic
from gantrymq.remoting.admin_bodies import ConsumerConnection, SubscriptionGroupConfig, SubscriptionGroupWrapper
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.pop_bodies import GroupLeases, SetModeRequest

CONSUME_POP = "CONSUME_POP"


@dataclass
class GroupMembers:
    """The members of a group at all brokers. by_broker: connections by broker name; failures: brokers not asked."""

    by_broker: dict[str, ConsumerConnection] = field(default_factory=dict)
    failures: dict[str, GantryError] = field(default_factory=dict)

    @property
    def is_online(self) -> bool:
        """Whether some broker has a connected member."""
        return any(connection.connection_set for connection in self.by_broker.values())

    @property
    def is_broadcasting(self) -> bool:
        """Whether the connected members broadcast: each keeps its own offsets, so brokers know no lag."""
        return broadcasts(self.by_broker.values())

    @property
    def keeps_offsets(self) -> bool:
        """Whether a connected member writes offsets itself; of those that pop, the broker keeps them."""
        return any(one.connection_set and one.consume_type != CONSUME_POP for one in self.by_broker.values())

    @property
    def client_ids(self) -> list[str]:
        """The members, each once, sorted."""
        return sorted({one.client_id for connection in self.by_broker.values() for one in connection.connection_set})


def broadcasts(connections: Iterable[ConsumerConnection]) -> bool:
    """Whether a group broadcasts: of its connections, one of each broker, all with members say so.

    A member that was set up wrongly must not hide how far the others are behind.
    """
    with_members = [one for one in connections if one.connection_set]
    return bool(with_members) and all(one.is_broadcasting for one in with_members)


class GroupAdmin:
    """`admin.groups`. Calls that end in _at speak to one broker, the others to all of a cluster."""

    def __init__(self, calls: AdminCalls, cluster: ClusterAdmin, topics: TopicAdmin, clients: ClientAdmin) -> None:
        self._calls = calls
        self._cluster = cluster
        self._topics = topics
        self._clients = clients

    async def configs_at(self, address: str) -> SubscriptionGroupWrapper:
        """Every consumer group of the broker with its settings."""
        answer = await self._calls.call(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return SubscriptionGroupWrapper.from_json(answer.body)

    async def create_at(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Create the group on this broker, or replace its settings."""
        await self._calls.call(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config.to_json())

    async def delete_at(self, address: str, group: str, *, remove_offset: bool = False) -> None:
        """Delete the group on this broker, and its offsets if wanted."""
        ext_fields = {"groupName": group, "removeOffset": "true" if remove_offset else "false"}
        await self._calls.call(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, ext_fields)

    async def leases_at(self, address: str, group: str, count: int = 100) -> GroupLeases:
        """What a group that pops has in flight at this broker, the oldest first; only GantryMQ's brokers tell it."""
        ext_fields = {"consumerGroup": group, "count": str(count)}
        return GroupLeases.from_json((await self._calls.call(address, RequestCode.GET_LEASES, ext_fields)).body)

    async def set_mode_at(self, address: str, group: str, topic: str, mode: str) -> None:
        """Have the group consume the topic by "POP" or "PULL" from now on; nothing is lost or skipped by the change."""
        body = SetModeRequest(topic, group, mode).to_json()
        await self._calls.call(address, RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)

    # -- at all brokers at once ---------------------------------------------------------------------------------------

    async def configs(self, cluster: str | None = None) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Every consumer group's settings: by group, then by broker name."""
        masters = await self._cluster.masters(cluster)
        tables, failures = await ask_each(masters, lambda name: self.configs_at(masters[name]))
        if failures:
            raise next(iter(failures.values()))
        found: dict[str, dict[str, SubscriptionGroupConfig]] = {}
        for name, table in tables.items():
            for group, config in table.subscription_group_table.items():
                found.setdefault(group, {})[name] = config
        return dict(sorted(found.items()))

    async def members(self, group: str, cluster: str | None = None) -> GroupMembers:
        """The group's consumers at every broker; a group without members is no error."""
        masters = await self._cluster.masters(cluster)

        async def ask(name: str) -> ConsumerConnection:
            try:
                return await self._clients.consumers_at(masters[name], group)
            except ResponseError as exc:
                if exc.code == ResponseCode.CONSUMER_NOT_ONLINE:
                    return ConsumerConnection()
                raise

        found, failures = await ask_each(masters, ask)
        return GroupMembers(found, failures)

    async def leases(self, group: str, cluster: str | None = None, count: int = 100) -> dict[str, GroupLeases]:
        """The same of every broker, by name. Raises what the first that did not answer said."""
        masters = await self._cluster.masters(cluster)
        found, failures = await ask_each(masters, lambda name: self.leases_at(masters[name], group, count))
        for failure in failures.values():
            raise failure
        return dict(sorted(found.items()))

    async def set_mode(self, group: str, topic: str, mode: str) -> list[str]:
        """Change how the group consumes the topic at every broker that has it. PartlyDone says which could not."""
        masters = await self._topics.masters(topic)
        return await tell_each(masters, lambda name: self.set_mode_at(masters[name], group, topic, mode))

    async def create(self, config: SubscriptionGroupConfig, cluster: str | None = None) -> list[str]:
        """Create the group, or replace its settings, at every master. PartlyDone says which could not."""
        masters = await self._cluster.masters(cluster)
        if not masters:
            raise ConfigError("there is no broker to create the group at")
        return await tell_each(masters, lambda name: self.create_at(masters[name], config))

    async def delete(
        self, group: str, cluster: str | None = None, *, remove_offsets: bool = True, remove_topics: bool = True
    ) -> list[str]:
        """Delete the group at every master, with its offsets and its retry and dead-letter topics if wanted."""
        masters = await self._cluster.masters(cluster)
        done = await tell_each(masters, lambda name: self.delete_at(masters[name], group, remove_offset=remove_offsets))
        if remove_topics:
            known = set(await self._topics.names())
            for topic in (retry_topic(group), dlq_topic(group)):
                if topic in known:
                    await self._topics.delete(topic, cluster)
        return done
