"""What the fast path asks Python about a pull: whether it is allowed, and which messages it wants.

These rules are the Python path's own (processors/pull.py); the twin walks the queue and hands the messages out.
"""

from __future__ import annotations

from appliance.broker.delivery.answers import found_texts
from appliance.broker.processors.pull import Parts, checked_filter
from appliance.remoting.connection import ServerConnection
from appliance.remoting.pull_request import PullFields
from gantrymq.message.topics import TOOLS_GROUP
from store.queues.filter import Filter


class FastPulls:
    """One broker's. knows_group: whether the group exists; commit: see ConsumerOffsetManager; texts: of answers."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.texts = found_texts()
        self.knows_group = parts.groups.configs.__contains__
        self.commit = parts.offsets.commit

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

    def counted(self, group: str, topic: str, count: int, size_bytes: int) -> bool:
        """Count messages that were handed out; False: to tools, which look and don't consume."""
        if group == TOOLS_GROUP:
            return False
        self._parts.stats.inc_group_get(group, topic, count, size_bytes)
        return True
