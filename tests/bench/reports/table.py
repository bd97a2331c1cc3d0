"""The benchmark of reports as text: a column for each size of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.bench.reports.measure import Measured, Taken
from tests.bench.reports.session import Run

MIB = 1 << 20
_ROWS: tuple[tuple[str, Callable[[Measured], str]], ...] = (
    ("log, MiB", lambda found: f"{found.log_bytes / MIB:,.0f}"),
    ("lake, MiB", lambda found: f"{found.lake_bytes / MIB:,.1f}"),
    ("plain read of the log", lambda found: _taken(found.plain_read)),
    ("very first start to a result, nothing is stored", lambda found: _taken(found.start, "-")),
    ("cold start to the first result, all is new", lambda found: _taken(found.first)),
    ("  reading the log, messages/s", lambda found: f"{found.rows_per_s:,.0f}"),
    ("  reading the log, CPU us a message", lambda found: f"{found.cpu_us_a_row:.2f}"),
    ("  memory at most, MiB", lambda found: f"{found.first.memory_bytes / MIB:,.0f}"),
    ("cold start to the first result, nothing is new", lambda found: _taken(found.cold)),
)


def render(sizes: Sequence[Measured]) -> str:
    """Seconds by the clock / seconds of CPU of all processes, where it says nothing else."""
    rows = [("messages", *(f"{found.messages:,}" for found in sizes))]
    rows += [(title, *(show(found) for found in sizes)) for title, show in _ROWS]
    for name in sizes[0].warm:
        rows.append((f"warm: {name}", *(_taken(found.warm[name]) for found in sizes)))
        if name == "traffic":
            rows.append(("  its counting alone, s", *(f"{found.warm[name].seconds['report']:.2f}" for found in sizes)))
            rows.append(("  the same by DuckDB, two threads", *(_taken(found.duckdb) for found in sizes)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["seconds by the clock / seconds of CPU of all processes; warm: nothing is new, the session is there"]
    lines += [
        row[0].ljust(widths[0])
        + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    return "\n".join(lines)


def _taken(taken: Taken | Run | None, otherwise: str = "not installed") -> str:
    return otherwise if taken is None else f"{taken.wall_s:.2f} / {taken.cpu_s:.2f}"
