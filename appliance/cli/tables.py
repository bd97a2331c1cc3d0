"""What the commands print as aligned tables and facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Cell = str | int | float | None
NOTHING = "-"


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, empty: str = "none") -> list[str]:
    """Lines with a head and aligned columns: numbers to the right, texts to the left, None as a dash."""
    cells = [list(row) for row in rows]
    if not cells:
        return [empty]
    texts = [[_cell(value) for value in row] for row in cells]
    is_number = [_is_numeric([row[at] for row in cells]) for at in range(len(columns))]
    widths = [max(len(columns[at]), *(len(row[at]) for row in texts)) for at in range(len(columns))]

    def line(row: Sequence[str]) -> str:
        parts = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, is_number, strict=True)
        )
        return "  ".join(parts).rstrip()

    return [line([column.upper() for column in columns]), *map(line, texts)]


def _is_numeric(column: Sequence[Cell]) -> bool:
    """Whether a column holds numbers, and nothing else but what is not known."""
    known = [value for value in column if value is not None]
    return bool(known) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)


def facts(pairs: Iterable[tuple[str, Cell]]) -> list[str]:
    """Names and values below each other."""
    known = list(pairs)
    width = max((len(name) for name, _ in known), default=0)
    return [f"{name.ljust(width)}  {_cell(value)}".rstrip() for name, value in known]


def _cell(value: Cell) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return value if value.isprintable() else "".join(each if each.isprintable() else "�" for each in value)
