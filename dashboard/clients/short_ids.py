"""Client ids look alike, 10.0.0.7@4711#5ff31dd45d1b: what all of a list share, and what tells them apart. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

PART_CHARS_MIN = 4  # of the last part, which is made up of random letters
_PART_END = re.compile(r"[@#.:-]")
_LAST_PART = "#"


def in_two(whole: str, ids: Collection[str]) -> tuple[str, str]:
    """(what it shares with all others, the rest). The shared part ends where a part of the id does."""
    least, most = min([whole, *ids]), max([whole, *ids])
    alike = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
    ends = [found.end() for found in _PART_END.finditer(whole[: alike if least != most else 0])]
    return whole[: ends[-1]] if ends else "", whole[ends[-1] :] if ends else whole


def shortened(whole: str, ids: Collection[str]) -> str:
    """As few letters as tell it from the others: `…5ff3`; of an id that is alone, what it has before its last part."""
    others = {*ids} - {whole}
    if not others:
        return whole.partition(_LAST_PART)[0] or whole
    shared, rest = in_two(whole, ids)
    begin, mark, end = rest.rpartition(_LAST_PART) if _LAST_PART in rest else ("", "", rest)
    if mark or shared.endswith(_LAST_PART):
        for chars in range(PART_CHARS_MIN, len(end)):
            if not any(other.startswith(f"{shared}{begin}{mark}{end[:chars]}") for other in others):
                rest = f"{begin}{mark}{end[:chars]}"
                break
    return f"…{rest}" if shared else rest
