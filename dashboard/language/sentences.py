"""Texts that know how they were made, so that another language can say them too.

What is written down (an incident, an alarm) or noted once for all tabs (why a broker does not answer) is made in one
language and read in others. `gettext` and `ngettext` of this module are Django's, and their text keeps its English
pattern and its values, also through `%`. `code_of` is that as JSON, `said` makes the text anew in the language that is
active, `again` does both; templates show a Sentence so by themselves. A plain str is its own code: names, numbers, what
a broker told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils import translation
from django.utils.html import escape
from django.utils.translation import gettext_noop

from dashboard.language.choice import PLAIN

Code = str | int | float | dict[str, Any]  # a dict: {"one": pattern, "many": pattern, "n": number, "with": codes}
DEPTH_MAX = 40  # of values within values, in what a database hands back


class Sentence(str):
    """A text with its code. Slices and sums of it are plain texts."""

    __slots__ = ("code",)
    code: dict[str, Any]

    def __new__(cls, text: str, code: dict[str, Any]) -> Sentence:
        made = super().__new__(cls, text)
        made.code = code
        return made

    def __str__(self) -> str:
        return self  # so that str(exc) of an error that was given a Sentence is one

    def __mod__(self, values: Any) -> Sentence:
        """values: by name; those that are sentences are said in the language that is active."""
        text = super().__mod__({key: again(one) for key, one in values.items()})
        return Sentence(text, self.code | {"with": {key: code_of(one) for key, one in values.items()}})

    def __html__(self) -> str:
        """What a template shows."""
        return escape(again(self))


def gettext(text: str) -> Sentence:
    """As Django's."""
    return Sentence(translation.gettext(text), {"one": text})


def ngettext(one: str, many: str, number: int) -> Sentence:
    """As Django's."""
    return Sentence(translation.ngettext(one, many, number), {"one": one, "many": many, "n": number})


def code_of(text: object) -> Code:
    """What `said` makes the text of again; a plain text, or a number, is its own."""
    if isinstance(text, Sentence):
        return text.code
    return text if isinstance(text, int | float) else str(text)


def said(code: Code, depth: int = 0) -> str:
    """The text in the language that is active. What is no code, or does not fit its pattern, is shown as it is."""
    if not isinstance(code, dict):
        return str(code)
    one, many, number = str(code.get("one", "")), code.get("many"), code.get("n")
    made = ngettext(one, str(many), number) if many and isinstance(number, int) else gettext(one)
    values = code.get("with")
    if not isinstance(values, dict) or depth >= DEPTH_MAX:
        return made
    try:
        # str's own %: a Sentence's would say each value once more, which doubles the work for each depth
        return Sentence(str.__mod__(made, {key: said(value, depth + 1) for key, value in values.items()}), code)
    except (KeyError, ValueError, TypeError):  # a row of another version
        return made


def again(text: Any) -> Any:
    """The same text in the language that is active now; what is no Sentence stays as it is."""
    return said(text.code) if isinstance(text, Sentence) else text


def in_english(text: Any) -> Any:
    """As it is written down where no code is kept."""
    with translation.override(PLAIN):
        return again(text)


def codes_of(texts: Mapping[str, str]) -> dict[str, Code]:
    """Codes by name, of those that have one."""
    return {name: text.code for name, text in texts.items() if isinstance(text, Sentence)}


# ---- texts side by side

_JOINTS = {
    " ": gettext_noop("%(first)s %(second)s"),
    ", ": gettext_noop("%(first)s, %(second)s"),
    "; ": gettext_noop("%(first)s; %(second)s"),
    ": ": gettext_noop("%(first)s: %(second)s"),
}


def joined(parts: Iterable[str], by: str = ", ") -> str:
    """The parts that are not empty, with what the language puts between them. by: one of ", ", "; ", ": ", " "."""
    there = [part for part in parts if part]
    if len(there) < 2:
        return there[0] if there else ""
    middle = len(there) // 2  # halves: a long list is not deep
    return gettext(_JOINTS[by]) % {"first": joined(there[:middle], by), "second": joined(there[middle:], by)}
