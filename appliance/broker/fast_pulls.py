"""What the fast path needs to know about a pull: whether it is allowed, and which messages it wants.

A pull by tag is decided about in the twin, from the tables that it borrows here, whether it brings its subscription or
its group's consumers have sent that with heartbeats; about any other one Python is asked. The rules are the Python
path's own (processors/pull.py). The twin walks the queue and hands the messages out.
"""

from __future__ import annotations

from appliance.broker.delivery.answers import found_texts
from appliance.broker.filters.filter import filter_of, parse_tags
from appliance.broker.processors.pull import PullParts, checked_filter
from appliance.remoting.connection import ServerConnection
from appliance.remoting.pull_request import PullFields
from gantrymq.message.topics import TOOLS_GROUP
from store.queues.filter import Filter


class FastPulls:
    """One broker's. commit: see ConsumerOffsetManager; texts: of answers.

    popping: topics and groups whose pulls the Python path refuses; groups, topics: their settings by name;
    consumers: groups that are online, by name; gets: the counters of what was handed out, by topic and group.
    """

    def __init__(self, parts: PullParts) -> None:
        self._parts = parts
        self.texts = found_texts()
        self.groups, self.topics = parts.groups.configs, parts.topics.configs
        self.consumers = parts.consumers.groups
        self.parse_tags, self.filter_of = parse_tags, filter_of
        self.commit = parts.offsets.commit_of_pull if parts.config.automatic_failover else parts.offsets.commit
        self.gets, self.broker_get = parts.stats.group_gets, parts.stats.broker_get
        self.tools_group = TOOLS_GROUP
        self.popping = parts.pop.modes.popping

    def wanted(
        self,
        connection: ServerConnection,
        group: str,
        topic: str,
        queue_id: int,
        queue_offset: int,
        count_max: int,
        sys_flag: int,
        subscription: str,
        expression_type: str | None,
        sub_version: str | None,
    ) -> Filter | None:
        """The filter of a pull that is allowed, None for all messages. Raises what the Python path raises."""
        fields = PullFields(
            group, topic, queue_id, queue_offset, count_max, sys_flag, subscription, expression_type,
            sub_version_text=sub_version,
        )  # fmt: skip
        return checked_filter(self._parts, connection, fields)

    def count_first(self, group: str, topic: str, count: int, size_bytes: int) -> None:
        """Count what was handed out to a group that has no counters for the topic yet."""
        self._parts.stats.inc_group_get(group, topic, count, size_bytes)
