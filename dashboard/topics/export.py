"""The list of topics as CSV: what was counted in turn, so that a broker is asked for nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.http import HttpResponse

from dashboard.cluster.values import TopicMetrics, TopicSummary
from dashboard.status.readers import Readers
from dashboard.topics.topic_cache import TopicBook, TopicFacts

COLUMNS = ("topic", "kind", "brokers", "read_queues", "write_queues", "access", "in_per_second", "stored",
           "last_write", "groups", "worst_lag", "worst_lag_ms", "worst_group", "out_per_second", "size_bytes",
           "size_is_exact", "producers", "producer_names")  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


def csv_response(
    rows: Iterable[TopicSummary], counted: Mapping[str, TopicMetrics], readers: Mapping[str, Readers], book: TopicBook
) -> HttpResponse:
    """What is not known is empty, never 0."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        facts = book.facts(row.name, row.brokers)
        line = _line(row, counted.get(row.name), readers.get(row.name), facts)
        writer.writerow([_harmless(value) for value in line])
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="topics.csv"'
    return response


def _line(row: TopicSummary, value: TopicMetrics | None, readers: Readers | None, facts: TopicFacts) -> list[object]:
    written = value.last_write_ms if value is not None else 0
    return [
        row.name, row.kind, " ".join(row.brokers), row.read_queues, row.write_queues, row.perm_text,
        "" if value is None or value.in_rate is None else round(value.in_rate, 2),
        "" if value is None else value.stored,
        datetime.fromtimestamp(written / 1000, UTC).isoformat(timespec="seconds") if written else "",
        "" if readers is None else readers.groups,
        "" if readers is None else readers.lag,
        "" if readers is None or readers.lag_ms is None else readers.lag_ms,
        "" if readers is None else readers.group,
        "" if readers is None or readers.out_rate is None else round(readers.out_rate, 2),
        "" if facts.size_bytes is None else facts.size_bytes,
        "" if facts.size_bytes is None else str(facts.is_exact).lower(),
        len(facts.senders) if facts.at else "",
        " ".join(sender.name for sender in facts.senders),
    ]  # fmt: skip


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
