"""The columns of the list of topics: what it sorts by, and its CSV, by what was counted in turn."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext_noop

from dashboard.cluster.values import TopicMetrics, TopicSummary
from dashboard.status.readers import Readers
from dashboard.topics.topic_cache import TopicFacts

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would compute


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of one topic. counted, readers: None is not known yet. look: its bytes and producers, on demand."""

    row: TopicSummary
    counted: TopicMetrics | None
    readers: Readers | None
    look: Callable[[], TopicFacts]

    @property
    def facts(self) -> TopicFacts:
        return self.look()


# A column is declared here and nowhere else: its name in CSV, and its value. What is not known is None, never 0.
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


# Those of the page, by what its address calls them: their heads, and the column that they sort by.
SORTS: dict[str, tuple[str, str]] = {
    "name": (gettext_noop("Topic"), "topic"),
    "rate": (gettext_noop("In/s"), "in_per_second"),
    "out": (gettext_noop("Consumed/s"), "out_per_second"),
    "stored": (gettext_noop("Stored"), "stored"),
    "size": (gettext_noop("Size"), "size_bytes"),
    "groups": (gettext_noop("Groups"), "groups"),
    "lag": (gettext_noop("Worst lag"), "worst_lag"),
    "senders": (gettext_noop("Producers"), "producers"),
    "queues": (gettext_noop("Queues"), "write_queues"),
    "written": (gettext_noop("Last write"), "last_write"),
}


def in_order(lines: Iterable[Line], sort: str, *, down: bool) -> list[Line]:
    """By a column of the page; what is not known is the smallest, and names decide among equals."""
    value = COLUMNS[SORTS[sort][1]]

    def key(line: Line) -> tuple[Any, ...]:
        if sort == "name":
            return line.row.name.lower(), line.row.name
        found = value(line)
        return found is not None, found if found is not None else 0, line.row.name

    return sorted(lines, key=key, reverse=down)


def csv_response(lines: Iterable[Line]) -> HttpResponse:
    """What is not known is empty, never 0."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for line in lines:
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
