"""The summary of a week as a letter: plain text, and HTML for a mail. Pure: made of the rows of reports.

Its HTML has tables and no pictures, so that nothing is fetched when it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.template.loader import render_to_string

from dashboard.cluster import units
from dashboard.reports.tables import change

ROWS_MAX = 10  # of a table
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Section:
    """A table, or a sentence where there is nothing."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    nothing: str = ""
    more: int = 0  # rows that are left out


@dataclass(frozen=True, slots=True)
class Letter:
    """What is told of a week. notes: what is missing from it."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        lines = [self.title, "", self.lead]
        lines += [line for note in self.notes for line in ("", f"Note: {note}")]
        for section in self.sections:
            lines += ["", section.title, "-" * len(section.title), *(_table(section) if section.rows else ())]
            if not section.rows:
                lines.append(section.nothing)
            if section.more:
                lines.append(f"and {section.more} more")
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        return render_to_string("reports/letter.html", {"letter": self})


def letter_of(week: str, rows: Mapping[str, Rows], notes: Iterable[str] = ()) -> Letter:
    """`week`: its first and last day in words. rows: of each report that has a result, by its name."""
    days, topics = rows.get("days", ()), rows.get("months", ())
    messages = _sum(days, "messages")
    is_week_before_whole = bool(days) and all(_number(row, "week_before") for row in days)
    before = _sum(days, "week_before") if is_week_before_whole else 0
    lead = f"{units.count(messages)} messages and {units.size(_sum(days, 'stored_bytes'))} were stored"
    lead += f", {change(messages / before - 1)} beside the week before." if before else "."
    sections = (_days(days), _topics(topics), _groups(rows.get("lag", ())), _retries(rows.get("retries", ())))
    return Letter(f"the week of {week}", lead, (*sections, _unused(rows.get("unused", ()))), tuple(notes))


def _days(rows: Rows) -> Section:
    cells = tuple(
        (
            str(row["day"]),
            units.count(_number(row, "messages")),
            units.size(_number(row, "stored_bytes")),
            change(_known(row, "day_change")),
            change(_known(row, "week_change")),
        )
        for row in rows
    )
    columns = ("Day", "Messages", "Stored", "Day before", "Week before")
    return Section("Traffic by day", columns, cells, "No message was stored in an ordinary topic.")


def _topics(rows: Rows) -> Section:
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row["kind"] == "normal":
            totals[str(row["topic"])][0] += _number(row, "messages")
            totals[str(row["topic"])][1] += _number(row, "stored_bytes")
    ranked = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    cells = tuple((topic, units.count(count), units.size(stored)) for topic, (count, stored) in ranked)
    return _cut("Largest topics", ("Topic", "Messages", "Stored"), cells, "No topic had messages.")


def _groups(rows: Rows) -> Section:
    worst: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        late, lag, over = (_number(row, name) for name in ("behind_seconds", "lag", "minutes_over"))
        seen = worst[str(row["group"])]
        seen[:] = max(seen[0], late), max(seen[1], lag), seen[2] + over
    ranked = sorted(worst.items(), key=lambda item: (-item[1][2], -item[1][0], item[0]))
    cells = tuple(
        (group, units.duration(late), units.count(lag), units.count(over))
        for group, (late, lag, over) in ranked
        if late or lag or over
    )
    columns = ("Group", "Behind at most", "Messages", "Minutes over its promise")
    return _cut("Groups behind", columns, cells, "No group was behind.")


def _retries(rows: Rows) -> Section:
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in rows:
        totals[str(row["group"])][0] += _number(row, "retried")
        totals[str(row["group"])][1] += _number(row, "dead_letters")
    ranked = sorted(totals.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    cells = tuple((group, units.count(retried), units.count(dead)) for group, (retried, dead) in ranked)
    columns = ("Group", "Sent back", "Dead letters")
    return _cut("Retries and dead letters", columns, cells, "No message was sent back, and none was given up.")


def _unused(rows: Rows) -> Section:
    cells = tuple((str(row["name"]), str(row["kind"]), units.moment(_number(row, "last_ms"))[:10]) for row in rows)
    return _cut("Unused topics and groups", ("Name", "Kind", "Last used"), cells, "All were used.")


def _cut(title: str, columns: tuple[str, ...], cells: tuple[tuple[str, ...], ...], nothing: str) -> Section:
    return Section(title, columns, cells[:ROWS_MAX], nothing, max(0, len(cells) - ROWS_MAX))


def _known(row: Mapping[str, object], name: str) -> float | None:
    value = row[name]
    return float(value) if isinstance(value, int | float) else None


def _number(row: Mapping[str, object], name: str) -> float:
    return _known(row, name) or 0


def _sum(rows: Rows, name: str) -> float:
    return sum(_number(row, name) for row in rows)


def _table(section: Section) -> list[str]:
    """Columns aligned by spaces, numbers to the right."""
    every = (section.columns, *section.rows)
    widths = [max(len(row[at]) for row in every) for at in range(len(section.columns))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in every
    ]
