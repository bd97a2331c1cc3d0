"""A broker's disk in figures that add up: messages, the store's other bytes, other files, free, reserved. Pure."""

from __future__ import annotations

from dashboard.cluster import units
from dashboard.language.sentences import gettext
from dashboard.status.board import BrokerFacts
from dashboard.status.metric import Metrics

PARTS = ("messages", "ahead", "others", "free", "reserved", "whole")


def disk_parts(facts: BrokerFacts) -> dict[str, int] | None:
    """PARTS in bytes; the last is the sum of the others. None: the broker does not say all of it.

    ahead: files are allocated in advance, and queues and indexes are no messages. others: stores of other brokers too.
    """
    store, others, log = facts.disk_store_bytes, facts.disk_others_bytes, facts.commit_log_bytes
    free, reserved = facts.disk_free_bytes, facts.disk_reserved_bytes
    if store is None or others is None or free is None or reserved is None or log is None:
        return None
    messages = min(log, store)  # the store is counted at times, the log's end is now
    parts = {"messages": messages, "ahead": store - messages, "others": others, "free": free, "reserved": reserved}
    return parts | {"whole": sum(parts.values())}


def put_disk(metrics: Metrics, prefix: str, facts: BrokerFacts, why: str | None) -> None:
    """Add `PREFIX.disk.PART` of each part."""
    parts = disk_parts(facts)
    silent = why or gettext("the broker does not report it")
    for name in PARTS:
        metrics.put(f"{prefix}.disk.{name}", units.size(parts[name] if parts else None), facts.at, silent)
