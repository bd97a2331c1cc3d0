"""Admin calls about consumer groups and clients: settings, who is connected, what a consumer says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gantrymq.client.admin.calls import ask_each
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.errors import ConfigError, GantryError, PartlyDone, ResponseError
from gantrymq.message.topics import dlq_topic, retry_topic
from gantrymq.remoting import fastjson
from gantrymq.remoting.bodies import (
    ConsumerConnection,
    ProducerConnection,
    SubscriptionGroupConfig,
    SubscriptionGroupWrapper,
)
from gantrymq.remoting.codes import RequestCode, ResponseCode
from gantrymq.remoting.json_body import Body, json_field


@dataclass
class ProducerInfo(Body):
    """A producer as 328 lists it."""

    client_id: str = ""
    remote_ip: str = json_field(name="remoteIP", default="")
    language: str = ""
    version: int = 0
    last_update_timestamp: int = 0


@dataclass
class GroupMembers:
    """The members of a group at all brokers. by_broker: connections by broker name; failures: brokers not asked."""

    by_broker: dict[str, ConsumerConnection] = field(default_factory=dict)
    failures: dict[str, GantryError] = field(default_factory=dict)

    @property
    def is_online(self) -> bool:
        return any(connection.connection_set for connection in self.by_broker.values())

    @property
    def client_ids(self) -> list[str]:
        return sorted({one.client_id for connection in self.by_broker.values() for one in connection.connection_set})


class GroupAdmin(TopicAdmin):
    """Consumer groups, consumers and producers."""

    async def subscription_groups(self, address: str) -> SubscriptionGroupWrapper:
        """Every consumer group of the broker with its settings."""
        answer = await self.call(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return SubscriptionGroupWrapper.from_json(answer.body)

    async def create_subscription_group(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Create the group on this broker, or replace its settings."""
        await self.call(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config.to_json())

    async def delete_subscription_group(self, address: str, group: str, *, remove_offset: bool = False) -> None:
        """Delete the group on this broker, and its offsets if wanted."""
        ext_fields = {"groupName": group, "removeOffset": "true" if remove_offset else "false"}
        await self.call(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, ext_fields)

    async def consumer_connections(self, address: str, group: str) -> ConsumerConnection:
        """Who consumes for the group, and what. ResponseError CONSUMER_NOT_ONLINE when nobody does."""
        answer = await self.call(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": group})
        return ConsumerConnection.from_json(answer.body)

    async def producer_connections(self, address: str, group: str) -> ProducerConnection:
        """Who produces for the group. ResponseError when nobody does."""
        answer = await self.call(address, RequestCode.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": group})
        return ProducerConnection.from_json(answer.body)

    async def consumer_running_info(self, address: str, group: str, client_id: str) -> bytes:
        """What a running consumer says of itself: JSON in fastjson's dialect, as the client wrote it."""
        ext_fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "false"}
        answer = await self.call(address, RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields, timeout_s=11.0)
        return answer.body

    async def running_info(
        self, address: str, group: str, client_id: str, *, with_stacks: bool = False
    ) -> dict[str, Any]:
        """consumer_running_info, read; mqTable is keyed by MessageQueue. with_stacks: member jstack has the text."""
        ext_fields = {"consumerGroup": group, "clientId": client_id, "jstackEnable": "true" if with_stacks else "false"}
        answer = await self.call(address, RequestCode.GET_CONSUMER_RUNNING_INFO, ext_fields, timeout_s=11.0)
        info = fastjson.loads(answer.body)
        return info if isinstance(info, dict) else {}

    async def producers(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Every producer group at this broker with its producers. Apache's brokers know this since 4.9.4."""
        data = fastjson.loads((await self.call(address, RequestCode.GET_ALL_PRODUCER_INFO)).body).get("data") or {}
        return {group: [ProducerInfo.from_dict(each) for each in members] for group, members in data.items()}

    # -- at all brokers at once ---------------------------------------------------------------------------------------

    async def groups(self, cluster: str | None = None) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Every consumer group's settings: by group, then by broker name."""
        masters = await self.masters(cluster)
        tables, failures = await ask_each(masters, lambda name: self.subscription_groups(masters[name]))
        if failures:
            raise next(iter(failures.values()))
        found: dict[str, dict[str, SubscriptionGroupConfig]] = {}
        for name, table in tables.items():
            for group, config in table.subscription_group_table.items():
                found.setdefault(group, {})[name] = config
        return dict(sorted(found.items()))

    async def members(self, group: str, cluster: str | None = None) -> GroupMembers:
        """Who consumes for the group, at every broker; nobody is no error."""
        masters = await self.masters(cluster)

        async def ask(name: str) -> ConsumerConnection:
            try:
                return await self.consumer_connections(masters[name], group)
            except ResponseError as exc:
                if exc.code == ResponseCode.CONSUMER_NOT_ONLINE:
                    return ConsumerConnection()
                raise

        found, failures = await ask_each(masters, ask)
        return GroupMembers(found, failures)

    async def create_group_everywhere(self, config: SubscriptionGroupConfig, cluster: str | None = None) -> list[str]:
        """Create the group, or replace its settings, at every master. PartlyDone says which could not."""
        masters = await self.masters(cluster)
        if not masters:
            raise ConfigError("there is no broker to create the group at")
        done, failures = await ask_each(masters, lambda name: self.create_subscription_group(masters[name], config))
        if failures:
            raise PartlyDone(list(done), failures)
        return list(done)

    async def delete_group_everywhere(
        self, group: str, cluster: str | None = None, *, remove_offsets: bool = True, remove_topics: bool = True
    ) -> list[str]:
        """Delete the group at every master, with its offsets and its retry and dead-letter topics if wanted."""
        masters = await self.masters(cluster)
        done, failures = await ask_each(
            masters,
            lambda name: self.delete_subscription_group(masters[name], group, remove_offset=remove_offsets),
        )
        if failures:
            raise PartlyDone(list(done), failures)
        if remove_topics:
            known = set(await self.topic_list())
            for topic in (retry_topic(group), dlq_topic(group)):
                if topic in known:
                    await self.delete_topic_everywhere(topic, cluster)
        return list(done)
