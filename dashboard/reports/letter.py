"""The summary of a week as a letter: plain text, and HTML for a mail. Pure: made of the rows of reports.

Its HTML has tables and no pictures, so that nothing is fetched when it is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from django.template.loader import render_to_string
from django.utils.translation import get_language, gettext

from dashboard.cluster import units
from dashboard.language.choice import html_tag
from dashboard.reports.tables import change
from dashboard.status.words import in_words

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
        lines += [line for note in self.notes for line in ("", gettext("Note: %(note)s") % {"note": note})]
        for section in self.sections:
            lines += ["", section.title, "-" * width_of(section.title), *(_table(section) if section.rows else ())]
            if not section.rows:
                lines.append(section.nothing)
            if section.more:
                lines.append(gettext("and %(more)s more") % {"more": section.more})
        return "\n".join(lines) + "\n"

    def html(self) -> str:
        return render_to_string("reports/letter.html", {"letter": self, "language": html_tag(get_language())})


def letter_of(week: str, rows: Mapping[str, Rows], notes: Iterable[str] = ()) -> Letter:
    """`week`: its first and last day in words. rows: of each report that has a result, by its name."""
    days, topics = rows.get("days", ()), rows.get("months", ())
    messages = _sum(days, "messages")
    is_week_before_whole = bool(days) and all(_number(row, "week_before") for row in days)
    before = _sum(days, "week_before") if is_week_before_whole else 0
    facts = {"count": units.count(messages), "size": units.size(_sum(days, "stored_bytes"))}
    if before:
        lead = gettext("%(count)s messages and %(size)s were stored, %(change)s compared with the week before.")
        lead = lead % (facts | {"change": change(messages / before - 1)})
    else:
        lead = gettext("%(count)s messages and %(size)s were stored.") % facts
    sections = (_days(days), _topics(topics), _groups(rows.get("lag", ())), _retries(rows.get("retries", ())))
    title = gettext("the week of %(week)s") % {"week": week}
    return Letter(title, lead, (*sections, _unused(rows.get("unused", ()))), tuple(notes))


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
    columns = (gettext("Day"), gettext("Messages"), gettext("Stored"), gettext("Day before"), gettext("Week before"))
    nothing = gettext("No message was stored in an ordinary topic.")
    return Section(gettext("Traffic by day"), columns, cells, nothing)


def _topics(rows: Rows) -> Section:
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row["kind"] == "normal":
            totals[str(row["topic"])][0] += _number(row, "messages")
            totals[str(row["topic"])][1] += _number(row, "stored_bytes")
    ranked = sorted(totals.items(), key=lambda item: (-item[1][1], item[0]))
    cells = tuple((topic, units.count(count), units.size(stored)) for topic, (count, stored) in ranked)
    columns = (gettext("Topic"), gettext("Messages"), gettext("Stored"))
    return _cut(gettext("Largest topics"), columns, cells, gettext("No topic had messages."))


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
    columns = (gettext("Group"), gettext("Maximum lag"), gettext("Messages"), gettext("Minutes over its promise"))
    return _cut(gettext("Groups behind"), columns, cells, gettext("No group was behind."))


def _retries(rows: Rows) -> Section:
    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in rows:
        totals[str(row["group"])][0] += _number(row, "retried")
        totals[str(row["group"])][1] += _number(row, "dead_letters")
    ranked = sorted(totals.items(), key=lambda item: (-item[1][1], -item[1][0], item[0]))
    cells = tuple((group, units.count(retried), units.count(dead)) for group, (retried, dead) in ranked)
    columns = (gettext("Group"), gettext("Sent back"), gettext("Dead letters"))
    nothing = gettext("No message was sent back or given up.")
    return _cut(gettext("Retries and dead letters"), columns, cells, nothing)


def _unused(rows: Rows) -> Section:
    cells = tuple(
        (str(row["name"]), in_words(str(row["kind"])), units.moment(_number(row, "last_ms"))[:10]) for row in rows
    )
    columns = (gettext("Name"), gettext("Kind"), gettext("Last used"))
    return _cut(gettext("Unused topics and groups"), columns, cells, gettext("All are used."))


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
    widths = [max(width_of(row[at]) for row in every) for at in range(len(section.columns))]
    lines = []
    for row in every:
        spaces = [" " * (width - width_of(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(
            "  ".join([row[0] + spaces[0], *(space + cell for cell, space in zip(row[1:], spaces[1:], strict=True))])
        )
    return lines


def width_of(text: str) -> int:
    """Columns of a terminal: a Chinese character takes two."""
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
