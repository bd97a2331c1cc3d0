"""The tree of a condition. Two sorts of nodes, as in RocketMQ: values, and conditions, which are true, false, unknown.

A constant TRUE, FALSE or NULL is both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from appliance.broker.sql_filter.java_values import Value

Order = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Property:
    """A message property: its text, or NULL."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `value` None: NULL."""

    value: Value

    @property
    def is_condition(self) -> bool:
        return self.value is None or type(self.value) is bool


@dataclass(frozen=True, slots=True)
class Negative:
    """A minus sign before a value: NULL unless that is a number."""

    operand: Node


@dataclass(frozen=True, slots=True)
class All:
    """AND of two or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR of two or more."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class Equal:
    """`=`, and with a NULL constant on the right IS NULL."""

    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Ordered:
    order: Order
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class OneOf:
    """IN and NOT IN: for properties only."""

    name: str
    texts: frozenset[str]
    is_negated: bool


@dataclass(frozen=True, slots=True)
class AsCondition:
    """A property where a condition should stand. Properties are texts, so it is never true: false, or unknown."""

    name: str


Node = Property | Constant | Negative | All | AnyOf | Not | Equal | Ordered | OneOf | AsCondition


def is_condition(node: Node) -> bool:
    """Say if the node is true, false or unknown by nature."""
    if isinstance(node, Constant):
        return node.is_condition
    return not isinstance(node, Property | Negative)
