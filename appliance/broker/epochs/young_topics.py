"""Topics that a promoted slave has messages of, but no settings: created in the master's last moments.

Tables follow the log by about half a second. Without its settings a topic's messages would be out of reach, and clients
would look for its queues at the master of before. Older topics without settings were deleted, and stay so.
"""

from __future__ import annotations

import logging

from appliance.broker.topics.topic_config import TopicConfigManager
from appliance.settings.roles import BrokerConfig
from gantrymq.errors import MessageRejected
from gantrymq.message import topics as names
from gantrymq.remoting.admin_bodies import TopicConfig
from store.message_store import MessageStore

logger = logging.getLogger(__name__)

YOUNG_MS = 60_000  # before the newest message: far more than tables are behind, unless the connection was lost


def bring_back(store: MessageStore, topics: TopicConfigManager, config: BrokerConfig) -> None:
    """Give young topics settings again, as a first send would; queue numbers as the log knows them."""
    newest_ms = store.parts.log.store_timestamp
    for topic in sorted(store.topics()):
        if topics.get(topic) is None and _began_ms(store, topic) >= newest_ms - YOUNG_MS:
            known = store.queue_ids(topic)[-1] + 1
            is_own = names.is_retry_topic(topic) or names.is_dlq_topic(topic) or names.is_system_topic(topic)
            count = known if is_own else max(known, config.default_topic_queue_nums)
            try:
                topics.update(TopicConfig(topic, count, count))
            except MessageRejected as exc:
                logger.warning("topic not restored", extra={"event": "topic_left_out", "why": str(exc)})


def _began_ms(store: MessageStore, topic: str) -> int:
    """When the topic's oldest message was stored; -1 when it has none."""
    times = [store.earliest_store_timestamp(topic, queue_id) for queue_id in store.queue_ids(topic)]
    return min((time for time in times if time >= 0), default=-1)
