"""The list of topics as CSV: what was counted in turn, so that a broker is asked for nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpResponse

from dashboard.cluster.values import TopicMetrics, TopicSummary
from dashboard.status.readers import Readers
from dashboard.topics.topic_cache import TopicBook, TopicFacts

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of one topic. counted, readers: None is not known yet."""

    row: TopicSummary
    counted: TopicMetrics | None
    readers: Readers | None
    facts: TopicFacts


# A column is declared here and nowhere else: its name, and its value. What is not known is None, never 0.
COLUMNS: dict[str, Callable[[Line], object]] = {
    "topic": lambda line: line.row.name,
    "kind": lambda line: line.row.kind,
    "brokers": lambda line: " ".join(line.row.brokers),
    "read_queues": lambda line: line.row.read_queues,
    "write_queues": lambda line: line.row.write_queues,
    "access": lambda line: line.row.perm_text,
    "in_per_second": lambda line: line.counted and _rounded(line.counted.in_rate),
    "stored": lambda line: line.counted and line.counted.stored,
    "last_write": lambda line: line.counted and _moment(line.counted.last_write_ms),
    "retention_ms": lambda line: _same({one.retention_ms for one in line.row.settings}),
    "groups": lambda line: line.readers and line.readers.groups,
    "worst_lag": lambda line: line.readers and line.readers.lag,
    "worst_lag_ms": lambda line: line.readers and line.readers.lag_ms,
    "worst_group": lambda line: line.readers and line.readers.group,
    "out_per_second": lambda line: line.readers and _rounded(line.readers.out_rate),
    "size_bytes": lambda line: line.facts.size_bytes,
    "size_is_exact": lambda line: None if line.facts.size_bytes is None else str(line.facts.is_exact).lower(),
    "producers": lambda line: len(line.facts.senders) if line.facts.at else None,
    "producer_names": lambda line: " ".join(sender.name for sender in line.facts.senders),
}


def csv_response(
    rows: Iterable[TopicSummary], counted: Mapping[str, TopicMetrics], readers: Mapping[str, Readers], book: TopicBook
) -> HttpResponse:
    """What is not known is empty, never 0."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        line = Line(row, counted.get(row.name), readers.get(row.name), book.facts(row.name, row.brokers))
        writer.writerow([_harmless(value(line)) for value in COLUMNS.values()])
    response = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = 'attachment; filename="topics.csv"'
    return response


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 2)


def _moment(at_ms: int) -> str | None:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds") if at_ms else None


def _same(values: set[int | None]) -> int | None:
    """The one value of all brokers; None where they differ or have none."""
    return values.pop() if len(values) == 1 else None


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
