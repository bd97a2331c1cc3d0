"""topics, for threads.

Written from gantrymq.client.admin.topics, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gantrymq.client.admin.figures import TopicFigures, TopicFiguresPage
from gantrymq.client.admin.results import TopicTraffic
from gantrymq.client.admin.topics import TopicAdmin
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.message.model import MessageQueue
from gantrymq.remoting.admin_bodies import TopicConfig, TopicConfigSerializeWrapper, TopicOffset, TopicStatsTable
from gantrymq.remoting.bodies import TopicRouteData


class SyncTopicAdmin(BlockingPart[TopicAdmin]):
    """`admin.topics`. Calls that end in _at speak to one broker, the others to all that matter."""

    def names(self) -> list[str]:
        """Every topic any broker registered, system and retry topics included."""
        return self._run(self._part().names())

    def route(self, topic: str) -> TopicRouteData:
        """Where the topic lives. RouteNotFound when no broker has it."""
        return self._run(self._part().route(topic))

    def configs_at(self, address: str) -> TopicConfigSerializeWrapper:
        """Every topic of the broker with its settings."""
        return self._run(self._part().configs_at(address))

    def create_at(self, address: str, config: TopicConfig) -> None:
        """Create the topic on this broker, or replace its settings.

        Its attributes (retention.ms, retention.messages) are added to those it has; a name with "-" before it goes.
        """
        self._run(self._part().create_at(address, config))

    def delete_at(self, address: str, topic: str) -> None:
        """Delete the topic and its queues on this broker; see name_servers.delete_topic for the routes."""
        self._run(self._part().delete_at(address, topic))

    def stats_at(self, address: str, topic: str) -> TopicStatsTable:
        """Smallest and next offset and last store time of each queue of the topic on this broker."""
        return self._run(self._part().stats_at(address, topic))

    def groups_at(self, address: str, topic: str) -> list[str]:
        """The consumer groups that subscribe to the topic or have offsets on it."""
        return self._run(self._part().groups_at(address, topic))

    def figures_at(self, address: str, topic: str) -> TopicFigures:
        """What the topic takes at a GantryMQ broker, and who sends to it. Apache's brokers refuse with
        REQUEST_CODE_NOT_SUPPORTED."""
        return self._run(self._part().figures_at(address, topic))

    def figures_page_at(self, address: str, after: str = "") -> TopicFiguresPage:
        """The same of the next topics behind a name, as many as the broker gives in one answer."""
        return self._run(self._part().figures_page_at(address, after))

    def masters(self, topic: str) -> dict[str, str]:
        """Broker name to master's address of the brokers that have the topic. RouteNotFound when none has it."""
        return self._run(self._part().masters(topic))

    def config_at(self, address: str, topic: str) -> TopicConfig | None:
        """The topic's settings at this broker, None when it has no such topic."""
        return self._run(self._part().config_at(address, topic))

    def create(self, config: TopicConfig, cluster: str | None = None) -> list[str]:
        """Create the topic, or replace its settings, at every master of the cluster (of all clusters when None).

        Returns the brokers' names; PartlyDone says which could not. An ordered topic gets its fixed layout of queues
        in the name servers' key-value store.
        """
        return self._run(self._part().create(config, cluster))

    def delete(self, topic: str, cluster: str | None = None) -> list[str]:
        """Delete the topic at every master of the cluster (of all when None), then at the name servers.

        Returns the brokers' names; PartlyDone says which could not, and then the name servers keep the rest of the
        route: the topic still lives there.
        """
        return self._run(self._part().delete(topic, cluster))

    def change(
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
        return self._run(
            self._part().change(
                topic, perm=perm, read_queues=read_queues, write_queues=write_queues, attributes=attributes
            )
        )

    def plan_change(
        self,
        topic: str,
        *,
        perm: int | None = None,
        read_queues: int | None = None,
        write_queues: int | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> dict[str, tuple[TopicConfig, TopicConfig]]:
        """What change would do."""
        return self._run(
            self._part().plan_change(
                topic, perm=perm, read_queues=read_queues, write_queues=write_queues, attributes=attributes
            )
        )

    def offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """Extent of every queue of the topic, at all its brokers."""
        return self._run(self._part().offsets(topic))

    def groups(self, topic: str) -> list[str]:
        """The consumer groups of the topic at any of its brokers."""
        return self._run(self._part().groups(topic))

    def traffic(self, topic: str) -> list[TopicTraffic]:
        """What goes through the topic: a row for each group that consumes it, one without a group when none does."""
        return self._run(self._part().traffic(topic))
