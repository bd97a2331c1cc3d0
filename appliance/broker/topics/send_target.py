"""What a send needs to know of its topic, in one object that one look finds.

With ten thousand topics each thing looked up by name lies in memory that the processor has not seen for a while: a
table's entry, the name to compare, the object, its numbers. So the plain facts and the counters of a topic stand
together, and a plain send asks no other table of the broker's.
"""

from __future__ import annotations

import sys

from appliance.broker.status.stats import BrokerStatsManager, TopicPuts
from appliance.settings.roles import BrokerConfig
from gantrymq.message.topics import CLIENTS_MAY_NOT_SEND_TO
from gantrymq.remoting.admin_bodies import SINGLE_TAG, TopicConfig
from gantrymq.remoting.bodies import PERM_WRITE
from store import MessageStore
from store.queues.topic_slot import TopicSlot


class SendTarget(TopicPuts):
    """A topic as its config was when this was made.

    queue_id_end: no queue has this id or a greater one. slot: what the store wants to hear of the topic again.
    """

    __slots__ = ("config", "queue_id_end", "slot", "write_queue_nums")

    def __init__(self, config: TopicConfig, slot: TopicSlot | None) -> None:
        super().__init__(sys.intern(config.topic_name))
        self.config = config
        self.write_queue_nums = config.write_queue_nums
        self.slot = slot
        self.queue_id_end = max(config.write_queue_nums, config.read_queue_nums)


class SendTargets:
    """The targets of all topics that were sent to.

    `plain` has those that any client may send to as they are, and whose senders are answered at once.
    """

    def __init__(self, stats: BrokerStatsManager, store: MessageStore, config: BrokerConfig) -> None:
        self.plain: dict[str, SendTarget] = {}
        self._others: dict[str, SendTarget] = {}
        self._stats = stats
        self._store = store
        self._config = config

    def of(self, config: TopicConfig, *, is_untold: bool) -> SendTarget:
        """Return the target of a topic with this config, the one that stands in the topic table.

        is_untold: answers about it wait, because a name server lacks it.
        """
        name = config.topic_name
        target = self.plain.get(name) or self._others.get(name)
        if target is None:
            target = SendTarget(config, self._store.topic_slot(name))
            self._others[target.topic] = target
            self._stats.watch(target)
        if not is_untold and target.topic in self._others and self._is_plain(config):
            self.plain[target.topic] = self._others.pop(target.topic)
        return target

    def _is_plain(self, config: TopicConfig) -> bool:
        name = config.topic_name
        if name in CLIENTS_MAY_NOT_SEND_TO or name.startswith("%") or config.topic_filter_type != SINGLE_TAG:
            return False
        return not config.order or bool(self._config.permission & PERM_WRITE)

    def forget_all(self) -> None:
        """The broker's permission changed: the next send to each topic looks again."""
        self.plain.clear()
        self._others.clear()

    def forget(self, topic: str) -> None:
        """The topic was changed or deleted: the next send looks again. What was counted is not lost."""
        self.plain.pop(topic, None)
        self._others.pop(topic, None)
