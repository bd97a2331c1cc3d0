"""groups, for threads.

Written from gantrymq.client.admin.groups, which is the one to change, by
`python -m tests.gantrymq.client.blocking.admin_twins`.
"""

from __future__ import annotations

from gantrymq.client.admin.groups import GroupAdmin, GroupMembers
from gantrymq.client.blocking.base import BlockingPart
from gantrymq.remoting.admin_bodies import SubscriptionGroupConfig, SubscriptionGroupWrapper
from gantrymq.remoting.pop_bodies import GroupLeases


class SyncGroupAdmin(BlockingPart[GroupAdmin]):
    """`admin.groups`. Calls that end in _at speak to one broker, the others to all of a cluster."""

    def configs_at(self, address: str) -> SubscriptionGroupWrapper:
        """Every consumer group of the broker with its settings."""
        return self._run(self._part().configs_at(address))

    def create_at(self, address: str, config: SubscriptionGroupConfig) -> None:
        """Create the group on this broker, or replace its settings."""
        self._run(self._part().create_at(address, config))

    def delete_at(self, address: str, group: str, *, remove_offset: bool = False) -> None:
        """Delete the group on this broker, and its offsets if wanted."""
        self._run(self._part().delete_at(address, group, remove_offset=remove_offset))

    def leases_at(self, address: str, group: str, count: int = 100) -> GroupLeases:
        """What a group that pops has in flight at this broker, the oldest first; only GantryMQ's brokers tell it."""
        return self._run(self._part().leases_at(address, group, count))

    def set_mode_at(self, address: str, group: str, topic: str, mode: str) -> None:
        """Have the group consume the topic by "POP" or "PULL" from now on; nothing is lost or skipped by the change."""
        self._run(self._part().set_mode_at(address, group, topic, mode))

    def configs(self, cluster: str | None = None) -> dict[str, dict[str, SubscriptionGroupConfig]]:
        """Every consumer group's settings: by group, then by broker name."""
        return self._run(self._part().configs(cluster))

    def members(self, group: str, cluster: str | None = None) -> GroupMembers:
        """The group's consumers at every broker; a group without members is no error."""
        return self._run(self._part().members(group, cluster))

    def leases(self, group: str, cluster: str | None = None, count: int = 100) -> dict[str, GroupLeases]:
        """The same of every broker, by name. Raises what the first that did not answer said."""
        return self._run(self._part().leases(group, cluster, count))

    def set_mode(self, group: str, topic: str, mode: str) -> list[str]:
        """Change how the group consumes the topic at every broker that has it. PartlyDone says which could not."""
        return self._run(self._part().set_mode(group, topic, mode))

    def create(self, config: SubscriptionGroupConfig, cluster: str | None = None) -> list[str]:
        """Create the group, or replace its settings, at every master. PartlyDone says which could not."""
        return self._run(self._part().create(config, cluster))

    def delete(
        self, group: str, cluster: str | None = None, *, remove_offsets: bool = True, remove_topics: bool = True
    ) -> list[str]:
        """Delete the group at every master, with its offsets and its retry and dead-letter topics if wanted."""
        return self._run(
            self._part().delete(group, cluster, remove_offsets=remove_offsets, remove_topics=remove_topics)
        )
