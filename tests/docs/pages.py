"""The pages of the project, and the code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *sorted(ROOT.glob("*.md")),
    ROOT / "appliance" / "README.md",
    ROOT / "gantrymq" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
BLOCK = re.compile(
    r"^(?:<!-- test: (?P<needs>\w+) -->\n)?(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^ *```$", re.M | re.S
)


def between(written: str, begin: str, end: str, text: str) -> str:
    """A page, with this between two of its lines."""
    head, _, rest = written.partition(begin)
    assert end in rest, begin
    return head + begin + text + end + rest.partition(end)[2]


@dataclass(frozen=True)
class Block:
    """A fenced piece of a page. needs: what the comment before it asks for. output: the text block right behind it."""

    page: str
    line: int
    language: str
    code: str
    needs: str = ""
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(path: Path) -> list[Block]:
    """All fenced blocks of a page, outputs joined to what printed them."""
    text = path.read_text(encoding="utf-8")
    found: list[Block] = []
    end_of_program = -1
    for match in BLOCK.finditer(text):
        indent = len(match["indent"])
        code = "".join(line[indent:] if line.strip() else line for line in match["code"].splitlines(keepends=True))
        if match["language"] == "text" and found and not text[end_of_program : match.start()].strip():
            last = found.pop()
            found.append(Block(last.page, last.line, last.language, last.code, last.needs, output=code))
            continue
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(path.name, line, match["language"], code, match["needs"] or ""))
        end_of_program = match.end()
    return found


PYTHON = [block for path in PAGES for block in blocks(path) if block.language == "python"]
SHELL = [block for path in PAGES for block in blocks(path) if block.language == "sh"]
