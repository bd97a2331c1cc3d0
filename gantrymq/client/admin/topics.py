"""Admin calls about topics: at one broker by address, or at all brokers of a cluster at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from gantrymq.client.admin.brokers import BrokerAdmin
from gantrymq.client.admin.calls import AdminCalls, ask_each, tell_each
from gantrymq.client.admin.cluster import ClusterAdmin
from gantrymq.client.admin.figures import TopicFigures, TopicFiguresPage
from gantrymq.client.admin.name_servers import NameServerAdmin
from gantrymq.client.admin.results import TopicTraffic
from gantrymq.errors import ConfigError, RouteNotFound
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import (
    BrokerStatsData,
    GroupList,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicList,
    TopicOffset,
    TopicStatsTable,
)
from gantrymq.remoting.bodies import TopicRouteData
from gantrymq.remoting.codes import RequestCode, ResponseCode

ORDER_TOPICS = "ORDER_TOPIC_CONFIG"  # namespace of the key-value store: topic to "broker:queues;..."


class TopicAdmin:
    """`admin.topics`. Calls that end in _at speak to one broker, the others to all that matter."""

    def __init__(
        self, calls: AdminCalls, cluster: ClusterAdmin, brokers: BrokerAdmin, name_servers: NameServerAdmin
    ) -> None:
        self._calls = calls
        self._cluster = cluster
        self._brokers = brokers
        self._name_servers = name_servers

    async def names(self) -> list[str]:
        """Every topic any broker registered, system and retry topics included."""
        answer = await self._calls.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        return TopicList.from_json(answer.body).topic_list

    async def route(self, topic: str) -> TopicRouteData:
        """Where the topic lives. RouteNotFound when no broker has it."""
        answer = await self._calls.name_servers.invoke(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise RouteNotFound(topic)
        return TopicRouteData.from_json(
            self._calls.name_servers.accepted(answer, RequestCode.GET_ROUTEINFO_BY_TOPIC).body
        )

    async def configs_at(self, address: str) -> TopicConfigSerializeWrapper:
        """Every topic of the broker with its settings."""
        return TopicConfigSerializeWrapper.from_json(
            (await self._calls.call(address, RequestCode.GET_ALL_TOPIC_CONFIG)).body
        )

    async def create_at(self, address: str, config: TopicConfig) -> None:
        """Create the topic on this broker, or replace its settings.

        Its attributes (retention.ms, retention.messages) are added to those it has; a name with "-" before it goes.
        """
        ext_fields = {
            "topic": config.topic_name,
            "defaultTopic": "TBW102",
            "readQueueNums": str(config.read_queue_nums),
            "writeQueueNums": str(config.write_queue_nums),
            "perm": str(config.perm),
            "topicFilterType": config.topic_filter_type,
            "topicSysFlag": str(config.topic_sys_flag),
            "order": "true" if config.order else "false",
        }
        if config.attributes:
            ext_fields["attributes"] = ",".join(
                name if name.startswith("-") else f"+{name.removeprefix('+')}={value}"
                for name, value in config.attributes.items()
            )
        await self._calls.call(address, RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields)

    async def delete_at(self, address: str, topic: str) -> None:
        """Delete the topic and its queues on this broker; see name_servers.delete_topic for the routes."""
        await self._calls.call(address, RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})

    async def stats_at(self, address: str, topic: str) -> TopicStatsTable:
        """Smallest and next offset and last store time of each queue of the topic on this broker."""
        answer = await self._calls.call(address, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
        return TopicStatsTable.from_json(answer.body)

    async def groups_at(self, address: str, topic: str) -> list[str]:
        """The consumer groups that subscribe to the topic or have offsets on it."""
        answer = await self._calls.call(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": topic})
        return GroupList.from_json(answer.body).group_list

    async def figures_at(self, address: str, topic: str) -> TopicFigures:
        """What the topic takes at a GantryMQ broker, and who sends to it. Apache's brokers refuse with
        REQUEST_CODE_NOT_SUPPORTED."""
        answer = await self._calls.call(address, RequestCode.GET_TOPIC_FIGURES, {"topic": topic})
        found = TopicFiguresPage.from_json(answer.body).topics
        return found[0] if found else TopicFigures(topic)

    async def figures_page_at(self, address: str, after: str = "") -> TopicFiguresPage:
        """The same of the next topics behind a name, as many as the broker gives in one answer."""
        answer = await self._calls.call(address, RequestCode.GET_TOPIC_FIGURES, {"after": after})
        return TopicFiguresPage.from_json(answer.body)

    # -- at all brokers at once ---------------------------------------------------------------------------------------

    async def masters(self, topic: str) -> dict[str, str]:
        """Broker name to master's address of the brokers that have the topic. RouteNotFound when none has it."""
        route = await self.route(topic)
        found = {broker.broker_name: broker.master_address for broker in route.broker_datas}
        return {name: address for name, address in sorted(found.items()) if address is not None}

    async def config_at(self, address: str, topic: str) -> TopicConfig | None:
        """The topic's settings at this broker, None when it has no such topic."""
        return (await self.configs_at(address)).topic_config_table.get(topic)

    async def create(self, config: TopicConfig, cluster: str | None = None) -> list[str]:
        """Create the topic, or replace its settings, at every master of the cluster (of all clusters when None).

        Returns the brokers' names; PartlyDone says which could not. An ordered topic gets its fixed layout of queues
        in the name servers' key-value store.
        """
        masters = await self._cluster.masters(cluster)
        if not masters:
            raise ConfigError("there is no broker to create the topic at")
        done = await tell_each(masters, lambda name: self.create_at(masters[name], config))
        if config.order:
            layout = ";".join(f"{name}:{config.write_queue_nums}" for name in masters)
            await self._name_servers.put_kv(ORDER_TOPICS, config.topic_name, layout)
        return done

    async def delete(self, topic: str, cluster: str | None = None) -> list[str]:
        """Delete the topic at every master of the cluster (of all when None), then at the name servers.

        Returns the brokers' names; PartlyDone says which could not, and then the name servers keep the rest of the
        route: the topic still lives there.
        """
        masters = await self._cluster.masters(cluster)
        done = await tell_each(masters, lambda name: self.delete_at(masters[name], topic))
        if len(await self._cluster.masters()) == len(masters):
            await self._name_servers.delete_topic(topic)
            await self._name_servers.delete_kv(ORDER_TOPICS, topic)
        return done

    async def change(
        self,
        topic: str,
        *,
        perm: int | None = None,
        read_queues: int | None = None,
        write_queues: int | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> dict[str, tuple[TopicConfig, TopicConfig]]:
        """Change some settings of an existing topic at every broker that has it; before and after, by broker name.

        attributes: changes, see changed_attributes. RouteNotFound when there is no such topic; PartlyDone says which
        brokers could not.
        """
        plan = await self.plan_change(
            topic, perm=perm, read_queues=read_queues, write_queues=write_queues, attributes=attributes
        )
        masters = await self.masters(topic)
        removed = {name: value for name, value in (attributes or {}).items() if name.startswith("-")}

        async def change(name: str) -> None:
            after = plan[name][1]
            wanted = {**(after.attributes or {}), **removed}  # brokers keep what a request doesn't take away
            await self.create_at(masters[name], dataclasses.replace(after, attributes=wanted or None))

        await tell_each(plan, change)
        return plan

    async def plan_change(
        self,
        topic: str,
        *,
        perm: int | None = None,
        read_queues: int | None = None,
        write_queues: int | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> dict[str, tuple[TopicConfig, TopicConfig]]:
        """What change would do."""
        masters = await self.masters(topic)
        plan: dict[str, tuple[TopicConfig, TopicConfig]] = {}
        for name, address in masters.items():
            before = await self.config_at(address, topic)
            if before is None:
                continue
            after = dataclasses.replace(
                before,
                perm=before.perm if perm is None else perm,
                read_queue_nums=before.read_queue_nums if read_queues is None else read_queues,
                write_queue_nums=before.write_queue_nums if write_queues is None else write_queues,
                attributes=changed_attributes(before.attributes, attributes),
            )
            plan[name] = before, after
        if not plan:
            raise RouteNotFound(topic)
        return plan

    async def offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Extent of every queue of the topic, at all its brokers."""
        masters = await self.masters(topic)
        tables, failures = await ask_each(masters.values(), lambda address: self.stats_at(address, topic))
        if failures:
            raise next(iter(failures.values()))
        return dict(sorted((queue, at) for table in tables.values() for queue, at in table.offset_table.items()))

    async def groups(self, topic: str) -> list[str]:
        """The consumer groups of the topic at any of its brokers."""
        masters = await self.masters(topic)
        lists, failures = await ask_each(masters.values(), lambda address: self.groups_at(address, topic))
        if failures and not lists:
            raise next(iter(failures.values()))
        return sorted({group for groups in lists.values() for group in groups})

    async def traffic(self, topic: str) -> list[TopicTraffic]:
        """What goes through the topic: a row for each group that consumes it, one without a group when none does."""
        masters = list((await self.masters(topic)).values())
        in_tps, in_today = await self._sum_stats(masters, "TOPIC_PUT_NUMS", topic)
        rows: list[TopicTraffic] = []
        for group in await self.groups(topic):
            out_tps, out_today = await self._sum_stats(masters, "GROUP_GET_NUMS", f"{topic}@{group}")
            rows.append(TopicTraffic(topic, group, in_tps, in_today, out_tps, out_today))
        return rows or [TopicTraffic(topic, None, in_tps, in_today)]

    async def _sum_stats(self, masters: list[str], name: str, key: str) -> tuple[float, int]:
        """Per second over the last minute, and the last 24 hours; what was never counted counts as nothing."""
        found, _ = await ask_each(masters, lambda address: self._brokers.stats(address, name, key))
        return sum((stats.stats_minute.tps for stats in found.values()), 0.0), sum(map(_last_day, found.values()))


def changed_attributes(known: Mapping[str, str] | None, changes: Mapping[str, str] | None) -> dict[str, str] | None:
    """A topic's attributes after changes: "name" or "+name" sets one, "-name" removes it. None when there is none."""
    attributes = dict(known or {})
    for name, value in (changes or {}).items():
        if name.startswith("-"):
            attributes.pop(name[1:], None)
        else:
            attributes[name.removeprefix("+")] = value
    return attributes or None


def _last_day(stats: BrokerStatsData) -> int:
    """The day's sum; while a broker is young its longer windows are still empty."""
    return stats.stats_day.sum or stats.stats_hour.sum or stats.stats_minute.sum
