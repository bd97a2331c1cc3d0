"""A compiled condition, and the few that were compiled last."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from appliance.broker.sql_filter.errors import SqlError
from appliance.broker.sql_filter.evaluate import Evaluate, compile_node, decides
from appliance.broker.sql_filter.parser import parse
from appliance.broker.sql_filter.tree import (
    All,
    AnyOf,
    AsCondition,
    Equal,
    Negative,
    Node,
    Not,
    OneOf,
    Ordered,
    Property,
)


class Condition:
    """One expression, ready to be asked. `weight`: how many comparisons it makes at most; `names`: what it looks at."""

    __slots__ = ("_evaluate", "names", "text", "weight")

    def __init__(self, text: str, evaluate: Evaluate, names: frozenset[str], weight: int) -> None:
        self.text = text
        self._evaluate = evaluate
        self.names = names
        self.weight = weight

    def is_met(self, properties: Mapping[str, str]) -> bool:
        """Whether a message with these properties is wanted."""
        return decides(self._evaluate, properties)

    def __repr__(self) -> str:
        return f"Condition({self.text[:80]!r})"


CONDITIONS_KEPT = 64  # the last ones: heartbeats and pulls bring the same texts again and again


def compile_condition(text: str) -> Condition:
    """Return the condition of a text. Raises SqlError, and nothing else."""
    result = _compiled(text)
    if isinstance(result, SqlError):
        raise SqlError(result.reason, result.position)
    return result


@functools.lru_cache(maxsize=CONDITIONS_KEPT)
def _compiled(text: str) -> Condition | SqlError:
    try:
        return _compile(text)
    except SqlError as exc:
        return exc.with_traceback(None)


def _compile(text: str) -> Condition:
    tree = parse(text)
    nodes = list(_nodes(tree))
    names = frozenset(node.name for node in nodes if isinstance(node, Property | OneOf | AsCondition))
    return Condition(text, compile_node(tree), names, len(nodes))


def _nodes(tree: Node) -> Iterator[Node]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case All(parts) | AnyOf(parts):
                waiting += parts
            case Not(operand) | Negative(operand):
                waiting.append(operand)
            case Equal(left, right) | Ordered(_, left, right):
                waiting += (left, right)
