"""A written-out table of request codes: who serves each, with what, and in which lane it waits.

Handlers are functions. Their first argument is the process's controller, seen through a protocol of the handler's
module that names the parts it uses, and no others: mypy compares the controller with all of them.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from appliance.remoting.lane import Answer, Route

if TYPE_CHECKING:
    from appliance.remoting.connection import ServerConnection


P = TypeVar("P", contravariant=True)


@dataclasses.dataclass(frozen=True, slots=True)
class Row(Generic[P]):
    """One request code. P: the parts of the process that its handler uses."""

    code: int
    handler: Callable[[P, ServerConnection, Any], Answer | Awaitable[Answer]]
    lane: str


def routes_of(rows: Iterable[Row[P]], parts: P) -> dict[int, Route]:
    """Give the handlers their parts.

    A handler is bound to its parts as a method is to its object: a partial makes each call of it a C call.
    """
    return {int(row.code): Route(types.MethodType(row.handler, parts), row.lane) for row in rows}
