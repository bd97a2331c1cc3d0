"""Tree to closures: each node becomes a function from the message's properties to its value.

Three values: True, False, and None for unknown. AND and OR stop at the first part that decides, in the written order,
because a part behind it may raise EvaluationError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from appliance.broker.sql_filter import tree
from appliance.broker.sql_filter.errors import EvaluationError, SqlError
from appliance.broker.sql_filter.java_values import (
    Long,
    Value,
    are_equal,
    compare,
    compare_doubles,
    read_double,
    read_int,
    read_long,
)

Properties = Mapping[str, str]
Evaluate = Callable[[Properties], Value]

HEIGHT_MAX = 200  # closures in one another: far from Python's limit


def compile_node(node: tree.Node, height: int = 0) -> Evaluate:
    """Return the function of a node. Raises SqlError when the tree is too high."""
    if height > HEIGHT_MAX:
        raise SqlError("too many comparisons in one another", 1)
    below = height + 1
    match node:
        case tree.Property(name):
            return lambda properties: properties.get(name)
        case tree.Constant(value):
            return lambda properties: value
        case tree.Negative(operand):
            return _negative(operand, below)
        case tree.AsCondition(name):
            return lambda properties: False if name in properties else None
        case tree.OneOf(name, texts, is_negated):
            return _one_of(name, texts, is_negated)
        case tree.Not(operand):
            return _not(compile_node(operand, below))
        case tree.All(parts):
            return _all([compile_node(part, below) for part in parts])
        case tree.AnyOf(parts):
            return _any_of([compile_node(part, below) for part in parts])
        case tree.Equal(left, right):
            return _equal(left, right, below)
        case tree.Ordered(order, left, right):
            return _ordered(order, left, right, below)


# -- logic ------------------------------------------------------------------------------------------------------------


def _not(operand: Evaluate) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        value = operand(properties)
        return None if value is None else not value

    return evaluate


def _all(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        result: Value = True
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif not value:
                return False
        return result

    return evaluate


def _any_of(parts: list[Evaluate]) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        result: Value = False
        for part in parts:
            value = part(properties)
            if value is None:
                result = None
            elif value:
                return True
        return result

    return evaluate


def _one_of(name: str, texts: frozenset[str], is_negated: bool) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else (text in texts) is not is_negated

    return evaluate


# -- comparisons ------------------------------------------------------------------------------------------------------


def constant_of(node: tree.Node) -> Value:
    """Return the number or text that a node always is, None when it is another kind of node."""
    if isinstance(node, tree.Constant):
        return node.value
    if isinstance(node, tree.Negative):
        value = constant_of(node.operand)
        if isinstance(value, int | float) and type(value) is not bool:
            return Long(-value) if type(value) is Long else -value
    return None


def _negative(operand: tree.Node, height: int) -> Evaluate:
    number = constant_of(tree.Negative(operand))
    inner = compile_node(operand, height)

    def evaluate(properties: Properties) -> Value:
        inner(properties)  # it may raise
        return number  # a property is a text, and a condition is no number either: NULL

    return evaluate


def _equal(left: tree.Node, right: tree.Node, height: int) -> Evaluate:
    constant = constant_of(right)
    if isinstance(left, tree.Property) and isinstance(constant, str):
        return _equals_text(left.name, constant)
    if isinstance(left, tree.Property) and right == tree.Constant(None):
        name = left.name
        return lambda properties: name not in properties
    if isinstance(left, tree.Property) and type(constant) in (int, Long):
        return _equals_whole(left.name, constant)  # type: ignore[arg-type]
    left_value, right_value = compile_node(left, height), compile_node(right, height)
    return lambda properties: are_equal(left_value(properties), right_value(properties))


def _equals_text(name: str, constant: str) -> Evaluate:
    def evaluate(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else text == constant

    return evaluate


def _equals_whole(name: str, constant: int) -> Evaluate:
    read = read_long if type(constant) is Long else read_int

    def evaluate(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else read(text) == constant

    return evaluate


_DECIDE: dict[tree.Order, Callable[[int], bool]] = {
    "<": lambda answer: answer < 0,
    "<=": lambda answer: answer <= 0,
    ">": lambda answer: answer > 0,
    ">=": lambda answer: answer >= 0,
}


def _ordered(order: tree.Order, left: tree.Node, right: tree.Node, height: int) -> Evaluate:
    constant = constant_of(right)
    if isinstance(left, tree.Property) and type(constant) in (int, Long):
        return _ordered_whole(order, left.name, constant)  # type: ignore[arg-type]
    decide = _DECIDE[order]
    left_value, right_value = compile_node(left, height), compile_node(right, height)

    def evaluate(properties: Properties) -> Value:
        first = left_value(properties)
        if first is None:
            return None
        second = right_value(properties)
        if second is None:
            return None
        if isinstance(first, str) and isinstance(second, str):
            return decide(compare_doubles(read_double(first), read_double(second)))
        return decide(compare(first, second))

    return evaluate


def _ordered_whole(order: tree.Order, name: str, constant: int) -> Evaluate:
    """The usual case, without detours: a property and a whole number."""
    read = read_long if type(constant) is Long else read_int

    def less(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else read(text) < constant

    def less_or_equal(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else read(text) <= constant

    def greater(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else read(text) > constant

    def greater_or_equal(properties: Properties) -> Value:
        text = properties.get(name)
        return None if text is None else read(text) >= constant

    by_order: dict[tree.Order, Evaluate] = {"<": less, "<=": less_or_equal, ">": greater, ">=": greater_or_equal}
    return by_order[order]


def decides(evaluate: Evaluate, properties: Properties) -> bool:
    """Whether the condition is true: unknown is not, and neither is what can't be compared."""
    try:
        return evaluate(properties) is True
    except EvaluationError:
        return False
