"""A compiled condition, and the few that were compiled last."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from appliance.broker.sql_filter import tree
from appliance.broker.sql_filter.errors import SqlError
from appliance.broker.sql_filter.evaluate import Evaluate, compile_node, decides
from appliance.broker.sql_filter.parser import parse


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
    root = parse(text)
    nodes = list(_nodes(root))
    names = frozenset(node.name for node in nodes if isinstance(node, tree.Property | tree.OneOf | tree.AsCondition))
    return Condition(text, compile_node(root), names, len(nodes))


def _nodes(root: tree.Node) -> Iterator[tree.Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case tree.All(parts) | tree.AnyOf(parts):
                waiting += parts
            case tree.Not(operand) | tree.Negative(operand):
                waiting.append(operand)
            case tree.Equal(left, right) | tree.Ordered(_, left, right):
                waiting += (left, right)
