"""The one shape of a list, and how a long one is read: `limit` items, then what follows `next`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Self, TypeVar

from django.db.models import QuerySet
from ninja import Query, Schema

from dashboard.cluster.browse import CURSOR_CHARS_MAX, read_cursor
from dashboard.cluster.values import PartialFailure
from dashboard.rest.refusals import FormProblem
from dashboard.rest.values import Moment

LIMIT_MAX = 500
BEGIN_DIGITS_MAX = 9
Cursor = Annotated[
    str, Query(max_length=CURSOR_CHARS_MAX, description="the `next` of the answer before; absent: from the beginning")
]
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="items at most; there may be fewer, and still a `next`")]
Since = Annotated[Moment | None, Query(description="from then on: 2026-11-21T07:30:00Z")]
Until = Annotated[Moment | None, Query(description="until then")]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked for of a list: so many items from the begin on."""

    begin: int
    limit: int

    @property
    def rows(self) -> slice:
        return slice(self.begin, self.begin + self.limit)


def part_of(cursor: str, limit: int) -> Part:
    """Raises FormProblem for a cursor that no answer had."""
    if cursor and not (cursor.isascii() and cursor.isdigit() and len(cursor) <= BEGIN_DIGITS_MAX):
        raise _not_given()
    return Part(int(cursor or 0), limit)


def place_of(cursor: str) -> dict[str, int]:
    """The same of a search through queues, as `browse` goes on from it."""
    found = read_cursor(cursor)
    if len(found) != (cursor.count(",") + 1 if cursor else 0):
        raise _not_given()
    return found


def _not_given() -> FormProblem:
    return FormProblem({"cursor": ["This is not the `next` of an answer."]})


class Listed(Schema, Generic[Row]):
    """total: how many there are, null if they were not counted. next: the `cursor` of what follows, null at the end.

    problems: what could not be asked, so that items of it may be missing.
    """

    items: list[Row]
    total: int | None
    next: str | None
    problems: list[str]

    @classmethod
    def whole(cls, items: Iterable[Any], failures: Sequence[PartialFailure | str] = (), **more: Any) -> Self:
        """All there is, in one answer: such lists are short by their kind."""
        shown = list(items)
        return cls(items=shown, total=len(shown), next=None, problems=sentences(failures), **more)

    @classmethod
    def cut(
        cls, part: Part, items: Iterable[Any], total: int, failures: Sequence[PartialFailure | str] = (), **more: Any
    ) -> Self:
        """items: those of the part."""
        shown = list(items)
        end = part.begin + len(shown)
        rest = str(end) if shown and end < total else None
        return cls(items=shown, total=total, next=rest, problems=sentences(failures), **more)

    @classmethod
    async def of_rows(cls, rows: QuerySet[Any], show: Callable[[Any], Any], cursor: str, limit: int) -> Self:
        """A part of what the database has, in its order."""
        part = part_of(cursor, limit)
        return cls.cut(part, [show(row) async for row in rows[part.rows]], await rows.acount())


def sentences(failures: Iterable[PartialFailure | str]) -> list[str]:
    """ "broker-a: no answer"."""
    return [one if isinstance(one, str) else f"{one.what}: {one.reason}" for one in failures]
