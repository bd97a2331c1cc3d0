"""Client ids look alike, 10.0.0.7@4711#5ff31dd45d1b: what all of a list share, and what tells them apart. Pure.

Lists are sorted and have each id once, so only neighbours are compared: pages of large groups ask this for each row.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

PART_CHARS_MIN = 4  # of the last part, which is made up of random letters
_PART_END = re.compile(r"[@#.:-]")
_LAST_PART = "#"


def in_two(whole: str, ids: Sequence[str]) -> tuple[str, str]:
    """(what it shares with all others, the rest). The shared part ends where a part of the id does."""
    least, most = min([whole, *ids[:1]]), max([whole, *ids[-1:]])
    alike = next((at for at, (one, other) in enumerate(zip(least, most, strict=False)) if one != other), len(least))
    ends = [found.end() for found in _PART_END.finditer(whole[: alike if least != most else 0])]
    return whole[: ends[-1]] if ends else "", whole[ends[-1] :] if ends else whole


def shortened(whole: str, ids: Sequence[str]) -> str:
    """As few letters as tell it from the others: `…5ff3`; of an id that is alone, what it has before its last part."""
    if all(each == whole for each in (*ids[:1], *ids[-1:])):
        return whole.partition(_LAST_PART)[0] or whole
    shared, rest = in_two(whole, ids)
    begin, mark, end = rest.rpartition(_LAST_PART) if _LAST_PART in rest else ("", "", rest)
    if mark or shared.endswith(_LAST_PART):
        for chars in range(PART_CHARS_MIN, len(end)):
            start = f"{shared}{begin}{mark}{end[:chars]}"
            at = bisect_left(ids, start)
            if not any(other.startswith(start) for other in ids[at : at + 2] if other != whole):
                rest = f"{begin}{mark}{end[:chars]}"
                break
    return f"…{rest}" if shared else rest
