"""Text to tokens, one at a time: what the parser has not asked for is not looked at, as in RocketMQ's."""

from __future__ import annotations

import enum
import re
from typing import NamedTuple

from appliance.broker.sql_filter.errors import SqlError


class Kind(enum.Enum):
    """What a token is. Words of the language are their own kinds."""

    END = "end of the condition"
    NAME = "name"
    WHOLE = "whole number"
    REAL = "real number"
    TEXT = "text"
    SYMBOL = "symbol"
    NOT = "NOT"
    AND = "AND"
    OR = "OR"
    BETWEEN = "BETWEEN"
    IN = "IN"
    TRUE = "TRUE"
    FALSE = "FALSE"
    NULL = "NULL"
    IS = "IS"


class Token(NamedTuple):
    """`text` as it stands in the condition; `position` from 0."""

    kind: Kind
    text: str
    position: int

    def __str__(self) -> str:
        return self.kind.value if self.kind is Kind.END else repr(self.text[:40])


_WORDS = {
    kind.value: kind
    for kind in (Kind.NOT, Kind.AND, Kind.OR, Kind.BETWEEN, Kind.IN, Kind.TRUE, Kind.FALSE, Kind.NULL, Kind.IS)
}
# No pattern can backtrack far: what repeats a character is possessive, and behind what repeats a group nothing fails.
# (Possessive groups would say it shorter; Python 3.11.2 goes wrong in them.) A line comment needs its line break, as in
# RocketMQ; a text ends with a quote behind which no other one stands.
_SKIPPED = re.compile(r"(?:[ \t\n\r\f]++|--[^\r\n]*+[\r\n]|/\*(?s:.*?)\*/)*")
_TOKEN = re.compile(
    r"(?P<REAL>[0-9]++\.[0-9]*+(?:[eE][+-]?[0-9]++)?|\.[0-9]++(?:[eE][+-]?[0-9]++)?|[0-9]++[eE][+-]?[0-9]++)"
    r"|(?P<WHOLE>0|[1-9][0-9]*+[lL]?)"
    r"|(?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*+)"
    r"|(?P<TEXT>'[^']*+(?:''[^']*+)*'(?!'))"
    r"|(?P<SYMBOL><=|>=|<>|[=<>(),+-])"
)


def next_token(text: str, position: int) -> tuple[Token, int]:
    """Return the token at or after a position, and where it ends. Raises SqlError."""
    skipped = _SKIPPED.match(text, position)
    assert skipped is not None  # it may be empty
    start = skipped.end()
    if start == len(text):
        return Token(Kind.END, "", start), start
    found = _TOKEN.match(text, start)
    if found is None:
        what = "a text without its closing quote" if text[start] == "'" else f"unexpected character {text[start]!r}"
        raise SqlError(what, start + 1)
    word, name = found.group(), found.lastgroup
    kind = _WORDS.get(word.upper(), Kind.NAME) if name == "NAME" else Kind[str(name)]
    return Token(kind, word, start), found.end()
