"""The topics of this broker: built-in ones, created on send, on demand and by hand; kept in topics.json.

Every change of the table (see ConfigTable) is announced, and so the broker registers itself with the name servers
again.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Collection
from pathlib import Path

from appliance.process.config_table import ConfigTable
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.log_limit import LogLimit
from gantrymq.message import topics as names
from gantrymq.remoting.admin_bodies import TopicConfig, TopicConfigSerializeWrapper
from gantrymq.remoting.bodies import PERM_INHERIT, PERM_READ, PERM_WRITE

logger = logging.getLogger(__name__)

READ_WRITE = PERM_READ | PERM_WRITE
SCHEDULE_QUEUES = 18  # fixed in RocketMQ, whatever messageDelayLevel says
BENCHMARK_QUEUES = 1024
CLUSTER_QUEUES = 16
DLQ_QUEUES = 1
# bits of topicSysFlag (RocketMQ: TopicSysFlag): a topic whose producers, a retry topic whose consumers run in unit mode
UNIT_FLAG = 1
UNIT_SUB_FLAG = 2
CREATED_TOPICS_MAX = 250_000  # by sends and heartbeats; an operator may go on


class TopicConfigManager(ConfigTable[TopicConfig]):
    """The topic table. load() before anything else; run() writes the file.

    on_replaced: told at once of a topic whose entry is another now, or gone. clock: seconds since the epoch.
    """

    def __init__(
        self,
        path: Path,
        config: BrokerConfig,
        *,
        on_replaced: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(path, "topicConfigTable", clock)
        self._config = config
        self._log_limit = LogLimit()
        self._on_replaced = on_replaced
        self._on_change: Callable[[TopicConfig | None], None] | None = None
        self._on_created_by_send: Callable[[TopicConfig], None] | None = None
        for built_in in built_in_topics(config):
            self._keep(built_in.topic_name, built_in)
        self.system_topics = self._system_topics()

    # -- life ---------------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read topics.json: its topics are added to the built-in ones and win over them. Raises StateFileError."""
        stored = self._file.load_as(TopicConfigSerializeWrapper.from_dict, "a topic table")
        if stored is None:
            self._touch()
            return
        self.data_version = stored.data_version
        missing = self.configs.keys() - stored.topic_config_table.keys()
        for topic, config in stored.topic_config_table.items():
            if topic != names.AUTO_CREATE_TOPIC or self._config.auto_create_topic_enable:
                self._keep(topic, self._named(topic, config))
        if missing:
            self._touch()

    def announce_to(
        self,
        changed: Callable[[TopicConfig | None], None],
        created_by_send: Callable[[TopicConfig], None] | None = None,
    ) -> None:
        """From now on tell `changed` of each topic that is created or changed (None: deleted).

        created_by_send: told of those that a send created.
        """
        self._on_change, self._on_created_by_send = changed, created_by_send

    # -- reading ------------------------------------------------------------------------------------------------------

    def get(self, topic: str) -> TopicConfig | None:
        return self.configs.get(topic)

    def is_system_topic(self, topic: str) -> bool:
        """Say if the topic is RocketMQ's or this broker's own: not to be changed or deleted by an operator."""
        return topic in self.system_topics or names.is_system_topic(topic)

    def entry(self, topic: str) -> str:
        """One topic's member of that table, `"name":{...}`."""
        return self._lines[topic]

    # -- creating -----------------------------------------------------------------------------------------------------

    def create_on_send(
        self, topic: str, default_topic: str, queue_count: int, remote: str, topic_sys_flag: int = 0
    ) -> TopicConfig | None:
        """Return the topic, created after the template `default_topic` if need be; None when the template forbids it.

        queue_count: what the client wants; the template's write queues are the upper limit. Raises MessageRejected for
        a name that no topic can have.
        """
        existing = self.configs.get(topic)
        if existing is not None:
            return existing
        names.check_topic(topic)
        _check_room(self.configs)
        template = self.configs.get(default_topic)
        if template is None or not template.perm & PERM_INHERIT:
            if self._log_limit.allows("topic_not_created", remote.rpartition(":")[0]):
                facts = {"event": "topic_not_created", "topic": topic, "remote": remote}
                facts["template"] = default_topic[: names.TOPIC_CHARS_MAX]
                logger.warning("topic not created: no template to inherit from", extra=facts)
            return None
        queues = max(1, min(queue_count, template.write_queue_nums))
        created = self._create(
            TopicConfig(
                topic,
                queues,
                queues,
                template.perm & ~PERM_INHERIT,
                template.topic_filter_type,
                topic_sys_flag or template.topic_sys_flag,
            ),
            remote,
        )
        if self._on_created_by_send is not None:
            self._on_created_by_send(created)
        return created

    def renew_auto_create_template(self) -> None:
        """Have sends create topics, or not, as autoCreateTopicEnable and defaultTopicQueueNums say now."""
        inherited = PERM_INHERIT if self._config.auto_create_topic_enable else 0
        if inherited or names.AUTO_CREATE_TOPIC in self.configs:
            queues = self._config.default_topic_queue_nums
            self.update(_topic(names.AUTO_CREATE_TOPIC, queues, inherited | READ_WRITE))

    def renew_trace_topic(self) -> None:
        """Have the trace topic, if traceTopicEnable says so now. One that is there stays with its messages."""
        name = self._config.trace_topic_name
        if self._config.trace_topic_enable and name not in self.configs:
            self.update(_topic(name, 1))
        self.system_topics = self._system_topics()

    def _system_topics(self) -> frozenset[str]:
        return names.SYSTEM_TOPICS | {built_in.topic_name for built_in in built_in_topics(self._config)}

    def create_retry_topic(
        self, topic: str, queue_nums: int, perm: int = READ_WRITE, topic_sys_flag: int = 0
    ) -> TopicConfig:
        """Return the retry or dead-letter topic `topic`, created if need be. Raises MessageRejected for a bad name."""
        return self._get_or_create(topic, queue_nums, perm, topic_sys_flag)

    def create_dlq_topic(self, group: str) -> TopicConfig:
        """Return the topic of the group's dead letters."""
        return self._get_or_create(names.dlq_topic(group), DLQ_QUEUES, READ_WRITE)

    def create_transaction_topic(self, topic: str) -> TopicConfig:
        """Return the topic of half messages or that of their ends; each exists from its first message on."""
        return self._get_or_create(topic, 1, READ_WRITE)

    def create_timer_topic(self) -> TopicConfig:
        """Return the topic where messages for a time of their own wait; it exists from the first of them on."""
        return self._get_or_create(names.TIMER_TOPIC, 1, READ_WRITE)

    def create_check_max_time_topic(self) -> TopicConfig:
        """Return the topic of transactions that were checked too often."""
        return self._get_or_create(names.TRANS_CHECK_MAX_TIME_TOPIC, 1, READ_WRITE)

    def _get_or_create(self, topic: str, queue_nums: int, perm: int, topic_sys_flag: int = 0) -> TopicConfig:
        existing = self.configs.get(topic)
        if existing is not None:
            return existing
        names.check_topic(topic)
        _check_room(self.configs)
        config = TopicConfig(topic, queue_nums, queue_nums, perm, topic_sys_flag=topic_sys_flag)
        return self._create(config, "broker")

    def _create(self, config: TopicConfig, remote: str) -> TopicConfig:
        self._replace(config)
        left_out = self._log_limit.left_out("topic_created", remote.rpartition(":")[0])
        if left_out is not None:
            facts = {"topic": config.topic_name, "queues": config.write_queue_nums, "perm": config.perm}
            facts |= {"event": "topic_created", "remote": remote} | ({"left_out": left_out} if left_out else {})
            logger.info("topic created", extra=facts)
        return config

    # -- changing -----------------------------------------------------------------------------------------------------

    def update(self, config: TopicConfig) -> None:
        """Create or replace a topic. Raises MessageRejected for a name that no topic can have."""
        if config.topic_name not in self.configs:
            names.check_topic(config.topic_name)
        self._replace(config)
        logger.info(
            "topic updated",
            extra={"event": "topic_updated", "topic": config.topic_name, "queues": config.write_queue_nums},
        )

    def delete(self, topic: str) -> bool:
        """Forget the topic; False when there was none. Messages and offsets are the caller's to clean."""
        if topic not in self.configs:
            return False
        self._drop(topic)
        self._touch()
        self._tell(None)
        logger.info("topic deleted", extra={"event": "topic_deleted", "topic": topic})
        return True

    async def replace_all(self, theirs: TopicConfigSerializeWrapper) -> None:
        """Take over a master's table as it is, its version included; for its slave."""
        await self._take_over(theirs.topic_config_table, theirs.data_version)

    def apply_order_topics(self, ordered: Collection[str]) -> bool:
        """Mark exactly the topics in `ordered` (the name servers' order table) as ordered. Returns if any changed.

        It is not announced: this is itself the answer to a registration.
        """
        turned = [
            dataclasses.replace(config, order=topic in ordered)
            for topic, config in self.configs.items()
            if config.order != (topic in ordered)
        ]
        for config in turned:
            self._keep(config.topic_name, config)
        if turned:
            self._touch()
        return bool(turned)

    def _replace(self, config: TopicConfig) -> None:
        self._keep(config.topic_name, dataclasses.replace(config))  # a copy: the caller may go on using its own
        self._touch()
        self._tell(config)

    def _named(self, name: str, config: TopicConfig) -> TopicConfig:
        return dataclasses.replace(config, topic_name=name)

    def _keep(self, name: str, config: TopicConfig) -> None:
        super()._keep(name, config)
        if self._on_replaced is not None:
            self._on_replaced(name)

    def _drop(self, name: str) -> None:
        super()._drop(name)
        if self._on_replaced is not None:
            self._on_replaced(name)

    def _tell(self, config: TopicConfig | None) -> None:
        if self._on_change is not None:
            self._on_change(config)


def _check_room(configs: Collection[str]) -> None:
    """Raise MessageRejected when sends and heartbeats may create no more topics."""
    if len(configs) >= CREATED_TOPICS_MAX:
        raise MessageRejected(f"this broker has {len(configs)} topics: it creates no further ones on first use")


def built_in_topics(config: BrokerConfig) -> list[TopicConfig]:
    """Return the topics a broker creates itself at every start."""
    cluster, broker = config.cluster_name, config.broker_name
    topics = [_topic(names.SELF_TEST_TOPIC, 1)]
    if config.auto_create_topic_enable:
        topics.append(_topic(names.AUTO_CREATE_TOPIC, config.default_topic_queue_nums, PERM_INHERIT | READ_WRITE))
    topics += [
        _topic(names.BENCHMARK_TOPIC, BENCHMARK_QUEUES),
        _topic(cluster, CLUSTER_QUEUES, PERM_INHERIT | READ_WRITE),
        _topic(broker, 1, PERM_INHERIT | READ_WRITE),
        _topic(names.OFFSET_MOVED_EVENT, 1),
        _topic(names.SCHEDULE_TOPIC, SCHEDULE_QUEUES),
        _topic(f"{cluster}_{names.REPLY_TOPIC_POSTFIX}", 1),
    ]
    if config.trace_topic_enable:
        topics.append(_topic(config.trace_topic_name, 1))
    return topics


def _topic(name: str, queues: int, perm: int = READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)
