"""Plain words: what docs/glossary.md forbids is not on screens, in the shell, in errors and docs."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.forbidden_words import AREAS, forbidden, may_have_a_riddle
from tests.source_files import ROOT

PACKAGES = ("gantrymq", "store", "appliance", "dashboard", "deploy")
# (start of the place, word): names and quotations, with the reason.
ALLOWED = {
    ("appliance/cli/bench.py", "ours"),  # the name of a peer
    ("README.md", "ours"),  # the name of a peer
    ("docs/performance.md", "ours"),  # the name of a peer
    ("appliance/reports/runner/ingest.py", "anew"),  # the name of an option
    ("docs/glossary.md", ""),  # lists the words
}
TEXTS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def is_allowed(place: str, word: str) -> bool:
    return any(place.startswith(start) and name in ("", word.lower()) for start, name in ALLOWED)


@pytest.mark.parametrize("area", AREAS)
def test_no_text_has_a_forbidden_word(area: str) -> None:
    found = [
        f"{place}: {word!r}, say: {say}"
        for place, text in AREAS[area]()
        for word, say in forbidden(text)
        if not is_allowed(place, word)
    ]
    assert not found, "say it with the glossary's term (docs/glossary.md):\n" + "\n".join(found)


def texts_of(path: Path) -> Iterator[str]:
    """The strings, docstrings and comments of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    return (token.string for token in tokens if token.type in TEXTS)


def riddles(path: Path) -> list[tuple[str, str]]:
    """What no docstring and no comment must say."""
    if not may_have_a_riddle(path.read_text(encoding="utf-8")):
        return []  # reading what is a text and what is a name takes long
    return list(forbidden("\n".join(texts_of(path)), everywhere=True))


def test_no_docstring_or_comment_has_a_riddle() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word!r}, say: {say}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for word, say in riddles(path)
        if not is_allowed(str(path.relative_to(ROOT)), word)
    ]
    assert not found, "say it with a standard term"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What rings is told to channels.", ["rings", "told"]),
        ("A letter waits; dead letters and letters, digits.", ["letter"]),
        ("The offsets may\nnot move.", ["may not"]),
        ("Run `gantry admin silences` or <code>ring</code>.", []),
        ("No more than 3, no more.", ["no more"]),
        ("A group without members has no consumers.", ["has no consumers"]),
        ("alarm_networks stays, an alarm does not, a false alarm does.", ["alarm"]),
    ],
)
def test_words_are_found_and_names_are_not(text: str, words: list[str]) -> None:
    assert sorted(word for word, _ in forbidden(text)) == sorted(words)


def test_names_are_not_texts(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("calm = mend(3)  # whoever reads this\n")
    assert [word for word, _ in riddles(path)] == ["whoever"]


@pytest.mark.parametrize(
    "text", ["# who it is:\n# Whoever.", '"""Of\n    ours"""', 'f("%(name)sours")', "x = 1  # (ours)"]
)
def test_a_riddle_is_found_wherever_it_stands(tmp_path: Path, text: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert [word for word, _ in riddles(path)] in (["Whoever"], ["ours"])
