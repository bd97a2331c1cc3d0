"""Plain words: riddles and archaic words in pages, templates, docstrings, comments and texts only become fewer."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("gantrymq", "store", "appliance", "dashboard", "deploy")
# Each has a standard term: ours -> GantryMQ's; whoever, somebody -> a client, a process; shall -> must; nobody -> no
# client; dear -> expensive; wish -> request; quarrel -> conflict; calm -> idle; mend -> repair.
REFUSED = re.compile(
    r"\b(ours|whoever|shall|nobody|somebody|anybody|everybody|dear|dearer|dearest|wish|wishes|quarrels?|calm|mend\w*)\b",
    re.IGNORECASE,
)
ALLOWED = {  # values of options, which stay
    ("appliance/cli/bench.py", "ours"): 4,
    ("README.md", "ours"): 1,
    ("docs/performance.md", "ours"): 2,
}
# How many are left in the rooms that are not clean yet. Only down: a room without an entry has none.
LEFT: dict[str, int] = {}
TEXTS = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def words_of(path: Path) -> Iterator[str]:
    """The refused words of one file; of a program only those in its strings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" and REFUSED.search(text):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        text = "\n".join(token.string for token in tokens if token.type in TEXTS)
    return (match[0].lower() for match in REFUSED.finditer(text))


def files() -> list[Path]:
    programs = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return [*programs, *(ROOT / "templates").rglob("*.html"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def room_of(path: Path) -> str:
    """The package's folder of a program; the name of a page."""
    parts = path.relative_to(ROOT).parts
    return parts[0] if path.suffix != ".py" or len(parts) == 2 else f"{parts[0]}/{parts[1]}"


def test_refused_words_only_become_fewer() -> None:
    found: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        for word, count in Counter(words_of(path)).items():
            count -= min(count, ALLOWED.get((name, word), 0))
            if count:
                found[room_of(path)] += count
                places.setdefault(room_of(path), []).append(f"{name}: {word}")
    worse = {room: places[room] for room, count in found.items() if count > LEFT.get(room, 0)}
    assert not worse, "say it with a standard term"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"""Nobody knows."""\n', ["nobody"]),
        ("ours = 1  # whoever reads this\n", ["whoever"]),
        ("calm = mend(3)\n", []),
    ],
)
def test_names_are_not_texts(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert list(words_of(path)) == words
