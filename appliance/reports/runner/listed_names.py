"""The topics and groups that brokers have on their lists, read from the files that they keep of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from appliance.reports.runner.broker_folders import BrokerFolder
from gantrymq.message.topics import REPLY_TOPIC_POSTFIX, SYSTEM_GROUP_PREFIX, topic_kind

logger = logging.getLogger(__name__)

NAMES_DDL = "kind STRING, name STRING"
_LISTS = (("topic", "topics.json", "topicConfigTable"), ("group", "subscriptionGroup.json", "subscriptionGroupTable"))


def listed_names(brokers: Iterable[BrokerFolder]) -> list[tuple[str, str]]:
    """(kind, name) of applications' topics and groups, each once, in order. A list that can't be read is empty."""
    brokers = list(brokers)
    own_names = {name for broker in brokers for name in (broker.broker_name, broker.cluster_name)}
    own_names |= {f"{broker.cluster_name}_{REPLY_TOPIC_POSTFIX}" for broker in brokers}
    found = {
        (kind, name)
        for broker in brokers
        for kind, file, table in _LISTS
        for name in _names(broker.store_folder / "config" / file, table)
        if (topic_kind(name, own_names) == "normal" if kind == "topic" else not name.startswith(SYSTEM_GROUP_PREFIX))
    }
    return sorted(found)


def _names(path: Path, table: str) -> list[str]:
    try:
        return [str(name) for name in json.loads(path.read_bytes()).get(table, {})]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, AttributeError, TypeError) as wrong:
        facts = {"event": "report_names_unreadable", "path": str(path), "error": repr(wrong)}
        logger.warning("list of names not read", extra=facts)
        return []
