"""A written-out table of request codes: who serves each, with what, and in which lane it waits.

Handlers are functions. The first argument has the parts of the process that they use, and no more: a small dataclass of
their own module, whose fields are filled by name when the process has made its parts.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from appliance.remoting.lane import Answer, Route

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection


P = TypeVar("P")


@dataclasses.dataclass(frozen=True, slots=True)
class Row(Generic[P]):
    """One request code. parts: the dataclass that the handler's first argument is of."""

    code: int
    handler: Callable[[P, ServerConnection, Any], Answer | Awaitable[Answer]]
    parts: type[P]
    lane: str


def parts_of(kind: type[P], *sources: object) -> P:
    """Return a `kind` (a dataclass): each field is the attribute of its name of the first source that has one.

    Raises AttributeError for a field that no source has.
    """
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        source = next((source for source in sources if hasattr(source, field.name)), None)
        if source is None:
            raise AttributeError(f"{kind.__module__}.{kind.__name__} wants {field.name!r}, which there is not")
        found[field.name] = getattr(source, field.name)
    return kind(**found)


def routes_of(rows: Iterable[Row[Any]], *sources: object) -> dict[int, Route]:
    """Give the handlers their parts; one set of parts for all rows of a kind.

    A handler is bound to its parts as a method is to its object: a partial makes each call of it a C call.
    """
    made: dict[type, Any] = {}
    routes: dict[int, Route] = {}
    for row in rows:
        if row.parts not in made:
            made[row.parts] = parts_of(row.parts, *sources)
        routes[int(row.code)] = Route(types.MethodType(row.handler, made[row.parts]), row.lane)
    return routes
