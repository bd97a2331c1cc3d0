"""Tokens to a tree, by recursive descent: RocketMQ's grammar with its checks of what may be compared.

    or := and {OR and}        and := equality {AND equality}
    equality := comparison { = comparison | <> comparison | IS [NOT] NULL }
    comparison := unary { (< <= > >=) unary | [NOT] BETWEEN unary AND unary | [NOT] IN ( text {, text} ) }
    unary := (+ | - | NOT) unary | literal | name | ( or )

So NOT binds tighter than `=`: `NOT a = 1` is `(NOT a) = 1`, there as here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from appliance.broker.sql_filter import tree
from appliance.broker.sql_filter.errors import SqlError
from appliance.broker.sql_filter.java_values import INT_MAX, LONG_MAX, Long, compare
from appliance.broker.sql_filter.lexer import Kind, Token, next_token

CHARS_MAX = 32_768
DEPTH_MAX = 64  # of brackets and signs in one another, and of comparisons of comparisons
PARTS_MAX = 2048  # values that are compared, texts of an IN not counted

_NULL = tree.Constant(None)
_LITERALS = {Kind.TRUE: tree.Constant(True), Kind.FALSE: tree.Constant(False), Kind.NULL: _NULL}
_ORDERS = ("<", "<=", ">", ">=")


def parse(text: str) -> tree.Node:
    """Return the tree of a condition. Raises SqlError, and nothing else whatever the text."""
    if len(text) > CHARS_MAX:
        raise SqlError(f"a condition has at most {CHARS_MAX} characters, this one {len(text)}", CHARS_MAX + 1)
    return _Parser(text).parse()


class _Parser:
    """Looks one token ahead, two where NOT may belong to BETWEEN or IN."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._token, self._end = next_token(text, 0)
        self._depth = 0
        self._parts = 0

    def parse(self) -> tree.Node:
        node = self._condition(self._or(), self._token)
        if self._token.kind is not Kind.END and not self._text.startswith("--", self._token.position):
            raise self._error("an operator or the end")
        return node

    # -- tokens -------------------------------------------------------------------------------------------------------

    def _advance(self) -> Token:
        token = self._token
        self._token, self._end = next_token(self._text, self._end)
        return token

    def _is(self, symbol: str) -> bool:
        return self._token.kind is Kind.SYMBOL and self._token.text == symbol

    def _take(self, kind: Kind) -> bool:
        if self._token.kind is not kind:
            return False
        self._advance()
        return True

    def _take_symbol(self, symbol: str) -> bool:
        if not self._is(symbol):
            return False
        self._advance()
        return True

    def _need(self, is_there: bool, what: str) -> None:
        if not is_there:
            raise self._error(what)

    def _error(self, expected: str) -> SqlError:
        return SqlError(f"found {self._token} where {expected} should be", self._token.position + 1)

    def _nested(self, rule: Callable[[], tree.Node]) -> tree.Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise SqlError(f"more than {DEPTH_MAX} levels of brackets or signs", self._token.position + 1)
        node = rule()
        self._depth -= 1
        return node

    def _count(self) -> None:
        self._parts += 1
        if self._parts > PARTS_MAX:
            raise SqlError(f"more than {PARTS_MAX} values", self._token.position + 1)

    # -- rules --------------------------------------------------------------------------------------------------------

    def _or(self) -> tree.Node:
        return self._chain(Kind.OR, self._and, tree.AnyOf)

    def _and(self) -> tree.Node:
        return self._chain(Kind.AND, self._equality, tree.All)

    def _chain(self, kind: Kind, rule: Callable[[], tree.Node], make: type[tree.All] | type[tree.AnyOf]) -> tree.Node:
        at = self._token
        first = rule()
        if self._token.kind is not kind:
            return first
        parts = [self._condition(first, at)]
        while self._take(kind):
            at = self._token
            parts.append(self._condition(rule(), at))
        return make(tuple(parts))

    def _equality(self) -> tree.Node:
        at = self._token
        left = self._comparison()
        links = 0
        while True:
            if self._take_symbol("="):
                left = _equal(left, self._comparison(), at)
            elif self._take_symbol("<>"):
                left = tree.Not(_equal(left, self._comparison(), at))
            elif self._take(Kind.IS):
                is_negated = self._take(Kind.NOT)
                self._need(self._take(Kind.NULL), "NULL" if is_negated else "NULL or NOT NULL")
                left = tree.Not(tree.Equal(left, _NULL)) if is_negated else tree.Equal(left, _NULL)
            else:
                return left
            links = self._link(links)

    def _comparison(self) -> tree.Node:
        self._count()
        at = self._token
        left = self._unary()
        links = 0
        while True:
            if self._token.kind is Kind.SYMBOL and self._token.text in _ORDERS:
                order = self._advance().text
                left = _ordered(order, left, self._unary(), at)
            elif self._token.kind in (Kind.BETWEEN, Kind.IN):
                left = self._range_or_list(left, at, is_negated=False)
            elif self._token.kind is Kind.NOT and next_token(self._text, self._end)[0].kind in (Kind.BETWEEN, Kind.IN):
                self._advance()
                left = self._range_or_list(left, at, is_negated=True)
            else:
                return left
            links = self._link(links)

    def _link(self, links: int) -> int:
        """Comparisons of comparisons lie in one another without a bracket."""
        if links == DEPTH_MAX:
            raise SqlError(f"more than {DEPTH_MAX} comparisons in a row", self._token.position + 1)
        return links + 1

    def _range_or_list(self, left: tree.Node, at: Token, *, is_negated: bool) -> tree.Node:
        if self._advance().kind is Kind.IN:
            return self._list(left, at, is_negated=is_negated)
        low = self._unary()
        self._need(self._take(Kind.AND), "AND")
        high = self._unary()
        if is_negated:
            return tree.AnyOf((_ordered("<", left, low, at), _ordered(">", left, high, at)))
        _check_range(low, high, at)
        return tree.All((_ordered(">=", left, low, at), _ordered("<=", left, high, at)))

    def _list(self, left: tree.Node, at: Token, *, is_negated: bool) -> tree.Node:
        self._need(self._take_symbol("("), "'('")
        texts = [self._list_text()]
        while self._take_symbol(","):
            texts.append(self._list_text())
        self._need(self._take_symbol(")"), "',' or ')'")
        if not isinstance(left, tree.Property):
            raise SqlError("only a property can be IN a list", at.position + 1)
        return tree.OneOf(left.name, frozenset(texts), is_negated)

    def _list_text(self) -> str:
        self._need(self._token.kind is Kind.TEXT, "a text in quotes")
        return _text_of(self._advance())

    def _unary(self) -> tree.Node:
        if self._take_symbol("+"):
            return self._nested(self._unary)
        if self._take_symbol("-"):
            return tree.Negative(self._nested(self._unary))
        if self._token.kind is Kind.NOT:
            self._advance()
            at = self._token
            return tree.Not(self._condition(self._nested(self._unary), at))
        if self._take_symbol("("):
            node = self._nested(self._or)
            self._need(self._take_symbol(")"), "an operator or ')'")
            return node
        return self._operand()

    def _operand(self) -> tree.Node:
        kind = self._token.kind
        if kind is Kind.NAME:
            return tree.Property(self._advance().text)
        if kind is Kind.TEXT:
            return tree.Constant(_text_of(self._advance()))
        if kind is Kind.WHOLE:
            return _whole(self._advance())
        if kind is Kind.REAL:
            return _real(self._advance())
        literal = _LITERALS.get(kind)
        if literal is None:
            raise self._error("a property, a number, a text or '('")
        self._advance()
        return literal

    def _condition(self, node: tree.Node, at: Token) -> tree.Node:
        """Take a value where a condition has to be."""
        if isinstance(node, tree.Property):
            return tree.AsCondition(node.name)
        if not tree.is_condition(node):
            raise SqlError("a value stands where a condition should be", at.position + 1)
        return node


# -- literals ---------------------------------------------------------------------------------------------------------


def _text_of(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")


def _whole(token: Token) -> tree.Constant:
    digits = token.text.rstrip("lL")
    if len(digits) > len(str(LONG_MAX)) or (number := int(digits)) > LONG_MAX:
        raise SqlError(f"{digits[:40]} does not fit into 64 bits", token.position + 1)
    return tree.Constant(number if number <= INT_MAX else Long(number))


def _real(token: Token) -> tree.Constant:
    number = float(token.text)
    if math.isinf(number):
        raise SqlError("this number is too large", token.position + 1)
    if not number:  # RocketMQ refuses whatever is below the smallest positive number, 0.0 too
        raise SqlError("a real number must be above 0; write 0 for zero", token.position + 1)
    return tree.Constant(number)


# -- checks -----------------------------------------------------------------------------------------------------------


def _equal(left: tree.Node, right: tree.Node, at: Token) -> tree.Node:
    for side in (left, right):
        if isinstance(side, tree.Constant) and side.value is None:
            raise SqlError("NULL can't be compared; use IS NULL or IS NOT NULL", at.position + 1)
    if (
        isinstance(left, tree.Constant)
        and isinstance(right, tree.Constant)
        and left.is_condition
        and not right.is_condition
    ):
        raise SqlError("TRUE or FALSE can't be compared with another literal", at.position + 1)
    return tree.Equal(left, right)


def _ordered(order: str, left: tree.Node, right: tree.Node, at: Token) -> tree.Node:
    for side in (left, right):
        if tree.is_condition(side) or (isinstance(side, tree.Constant) and isinstance(side.value, str)):
            raise SqlError(f"only numbers can be compared by {order}", at.position + 1)
    return tree.Ordered(order, left, right)  # type: ignore[arg-type]


def _check_range(low: tree.Node, high: tree.Node, at: Token) -> None:
    """Literals must be in order. Others than numbers are refused by the comparison."""
    if isinstance(low, tree.Constant) and isinstance(high, tree.Constant):
        values = low.value, high.value
        if not any(value is None or isinstance(value, bool | str) for value in values):
            first, last = values
            if compare(last, first) < 0:  # type: ignore[arg-type]
                raise SqlError("Illegal values of between: the left must not be above the right", at.position + 1)
