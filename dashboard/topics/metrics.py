"""Topics' bytes and producers as metrics of a page."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.cluster import units
from dashboard.cluster.values import TopicSummary
from dashboard.status.metric import Metrics
from dashboard.topics.topic_cache import TopicBook, TopicFacts

FRESH_S = 120.0  # topics are asked for in turn: with thousands of them an age of a minute is no fault
ABOUT = "≈"


def size_text(facts: TopicFacts) -> str:
    """ "3.2 MiB", with a mark before it while a part of the messages is taken to be like the rest."""
    text = units.size(facts.size_bytes)
    return text if facts.is_exact or facts.size_bytes is None else f"{ABOUT}{units.THIN}{text}"


def put_figures(metrics: Metrics, rows: Sequence[TopicSummary], book: TopicBook) -> None:
    """The rows of the list."""
    for row in rows:
        facts, prefix = book.facts(row.name, row.brokers), f"row.{row.name}"
        put_size(metrics, prefix, facts)
        is_known, at = facts.at > 0, _moment(metrics, facts)
        metrics.put(f"{prefix}.senders", units.count(len(facts.senders)) if is_known else units.UNKNOWN, at, facts.why)
        metrics.put(f"{prefix}.sendernames", names_text(facts) if is_known else units.UNKNOWN, at, facts.why)


def put_size(metrics: Metrics, prefix: str, facts: TopicFacts) -> None:
    """One topic's bytes."""
    metrics.put(f"{prefix}.size", size_text(facts), _moment(metrics, facts), facts.why)


def _moment(metrics: Metrics, facts: TopicFacts) -> float:
    """What is younger than FRESH_S shows no age, as long as its brokers answer."""
    return metrics.now if metrics.now - facts.at < FRESH_S and not facts.is_silent else facts.at


def names_text(facts: TopicFacts) -> str:
    """Who sends, in short: "orders-app, +2"."""
    names = list(dict.fromkeys(name for sender in facts.senders for name in sender.groups or (sender.name,)))
    return "" if not names else names[0] if len(names) == 1 else f"{names[0]}, +{len(names) - 1}"
