"""Words and phrases that no text of ours uses, what to say instead, and the texts that people read, by area.

docs/glossary.md has the terms. A phrase is listed here only if it can be found without false alarms; names of commands,
paths and settings (in backticks or <code>) are not texts.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dashboard.language.catalog import Message
from tests.dashboard.language.texts import texts_of_pages, texts_of_scripts
from tests.source_files import ROOT, syntax_of


@dataclass(frozen=True)
class Phrase:
    """pattern: a regular expression, any case. say: the term instead. everywhere: in docstrings and comments, too."""

    pattern: str
    say: str
    everywhere: bool = False


PHRASES = (
    Phrase(r"\bours\b", "GantryMQ's", everywhere=True),
    Phrase(r"\bwhoever\b", "a client, a process", everywhere=True),
    Phrase(r"\b(?:no|some|any|every)body\b", "no client, a process", everywhere=True),
    Phrase(r"\bshall\b", "must", everywhere=True),
    Phrase(r"\bdear(?:er|est)?\b", "expensive", everywhere=True),
    Phrase(r"\bwish(?:es)?\b", "a request", everywhere=True),
    Phrase(r"\bquarrels?\b", "a conflict", everywhere=True),
    Phrase(r"\bcalm\b", "idle", everywhere=True),
    Phrase(r"\bmend\w*\b", "repair", everywhere=True),
    Phrase(r"\bamiss\b", "wrong; past problems"),
    Phrase(r"\b(?:rings?|rang|rung|ringing)\b", "an alert opens, is open"),
    Phrase(r"(?<!false )\balarms?\b", "alert"),
    Phrase(r"\b(?:told|telling)\b", "notify, report, send, show; unknown"),
    Phrase(
        r"(?<!dead[ -])\bletters?\b(?! of (?:one|different) scripts?)(?!,? (?:and |or )?(?:digits?|figures))",
        "dead-letter message, mail",
    ),
    Phrase(r"\bput(?:s|ting)? back\b", "resend; set back (a clock)"),
    Phrase(r"\bsilence[sd]?\b", "mute"),
    Phrase(r"\b(?:has|have|with) no consumers\b|\bno (?:consumer is running|member is connected)\b", "has no members"),
    Phrase(r"\b(?:move|moves|moved|moving) (?:its|their|a|the|your|a group's) (?:position|place)s?\b", "reset offsets"),
    Phrase(r"\b(?:its|their|group's|no) (?:position|place)s? in\b", "offset"),
    Phrase(r"\bsuccessions?\b|\bhand(?:s|ed|ing)? over\b", "switchover, promotion"),
    Phrase(r"\bwhose log it is\b", "log epochs"),
    Phrase(r"\bpeople\b", "users"),
    Phrase(r"\b(?:a|another|one) person\b", "a user, an administrator"),
    Phrase(r"\bwho may\b", "users and roles; who can"),
    Phrase(r"\blet(?:s|ting)? go\b", "release, delete, resume"),
    Phrase(r"\bwhat waits\b", "waiting messages, lag"),
    Phrase(r"\basks? for (?:no|an) account\b|\bdoes not ask\b", "required, optional, off"),
    Phrase(r"\basked of\b", "calls"),
    Phrase(r"\bcomes? again\b", "is delivered again"),
    Phrase(r"\b(?:is|are|was|were) waited for\b", "wait for"),
    Phrase(r"\bmay not\b", "must not, cannot"),
    Phrase(r"\b(?:is|are) to (?!be\b)", "must, will"),
    Phrase(r"\bof (?:its|their|your|one's|his|her) own\b", "its own ..."),
    Phrase(r"\ball the same\b", "anyway, still"),
    Phrase(r"\bas often as (?:it|they) may\b", "used up its retries"),
    Phrase(r"\bno more\b(?! than)", "no longer"),
    Phrase(r"\bstands? (?:here|there|on|in|beside|elsewhere|below|above)\b", "is here, appears here"),
    Phrase(r"\bno way back\b", "This cannot be undone."),
    Phrase(r"\byet to come\b", "in the future"),
    Phrase(r"\bwants to\b", "the verb itself"),
    Phrase(r"\banew\b", "again, new"),
    Phrase(r"\bin step\b", "in sync"),
)

_CODE = re.compile(
    r"```.*?```|`[^`\n]*`|<code[^>]*>.*?</code>|</?[a-z][^>]*>|%\(\w+\)[sd]|\]\([^)]*\)|/api/v1/\S+|[\w-]*_[\w-]*|\b[\w-]+/(?=\s|\w)",
    re.S,
)


_EVERYWHERE = re.compile("|".join(phrase.pattern for phrase in PHRASES if phrase.everywhere), re.IGNORECASE)
_PLACE = re.compile(r"%\(\w+\)[sd]")  # of _CODE, what may stand right before a word


def may_have_a_riddle(source: str) -> bool:
    """Whether a module's source, names and all, has a word that docstrings must not: most have none."""
    return bool(_EVERYWHERE.search(" ".join(_PLACE.sub(" ", source).split())))


def forbidden(text: str, *, everywhere: bool = False) -> Iterator[tuple[str, str]]:
    """What of a text is forbidden, each with what to say. everywhere: only what docstrings must not say either."""
    plain = " ".join(_CODE.sub(" … ", text).split())
    for phrase in PHRASES:
        if phrase.everywhere or not everywhere:
            for match in re.finditer(phrase.pattern, plain, re.IGNORECASE):
                yield match[0], phrase.say


def screens() -> Iterator[tuple[str, str]]:
    """(place, text) of each text that a page or script shows."""
    for found in (texts_of_pages(), texts_of_scripts()):
        for message, place in found.items():
            yield place, _english(message)


def _english(message: Message) -> str:
    return f"{message.text}\n{message.plural}"


def shell() -> Iterator[tuple[str, str]]:
    """The strings of `gantry` and of the modules in deploy/: help and output."""
    yield from _strings(sorted((*(ROOT / "appliance/cli").rglob("*.py"), *(ROOT / "deploy").rglob("*.py"))))


def errors() -> Iterator[tuple[str, str]]:
    """The strings of all other modules: errors, logs, REST's descriptions."""
    shown = {text for found in (texts_of_pages(),) for message in found for text in (message.text, message.plural)}
    for folder in ("gantrymq", "store", "appliance", "dashboard"):
        paths = (path for path in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in path.parts)
        outside = (path for path in paths if not path.is_relative_to(ROOT / "appliance/cli"))
        yield from ((place, text) for place, text in _strings(outside) if text not in shown)


def docs() -> Iterator[tuple[str, str]]:
    """Each page, by paragraph."""
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))):
        line = 1
        for paragraph in _CODE_BLOCK.sub(_blank, path.read_text(encoding="utf-8")).split("\n\n"):
            yield f"{path.relative_to(ROOT)}:{line}", paragraph
            line += paragraph.count("\n") + 2


_CODE_BLOCK = re.compile(r"^ *```.*?^ *```$", re.S | re.M)


def _blank(block: re.Match[str]) -> str:
    return "\n" * block[0].count("\n")


def _strings(paths: Iterator[Path] | list[Path]) -> Iterator[tuple[str, str]]:
    """The strings of modules that have more than one word; no docstrings."""
    for path in paths:
        tree = syntax_of(path)
        statements: set[int] = set()
        for node in ast.walk(tree):  # a statement comes before what is in it
            if isinstance(node, ast.Expr):
                statements.add(id(node.value))
                continue
            text = node.value if isinstance(node, ast.Constant) and id(node) not in statements else None
            if isinstance(text, str) and " " in text.strip():
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}", text


AREAS = {"screens": screens, "shell": shell, "errors": errors, "docs": docs}

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django_settings")
    import django

    django.setup()
    for name, texts in AREAS.items():
        for at, said in texts():
            for words, instead in forbidden(said):
                print(f"{name}  {at}: {words!r}, say: {instead}")
