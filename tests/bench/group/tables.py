"""The tables that the program prints. No I/O."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from tests.bench.group.loads import LoadRun
from tests.bench.group.losses import Loss
from tests.interop.failover.gaps import summary

BASE = "dledger"  # whose rates the others are divided by
PARTS = ("master", "others", "beside")


def losses_table(losses: Mapping[str, Sequence[Loss]]) -> str:
    lines = ["| | a member accepts | since the process's end | the SDK's producer |", "|---|---|---|---|"]
    for name, found in losses.items():
        every = (
            [each.any_member_s for each in found],
            [each.since_end_s for each in found],
            [each.sdk_s for each in found],
        )
        columns = map(summary, every)
        lines.append(f"| {name} | {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def loads_table(runs: Mapping[tuple[int, str], Sequence[LoadRun]]) -> str:
    """By senders and name. The rate of each round is divided by the base's of the same round."""
    heads = [
        "senders",
        "",
        "messages/s",
        "ratio (worst)",
        "p99 ms",
        *(f"CPU us, {part}" for part in PARTS),
        "other work",
    ]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for (senders, name), found in runs.items():
        base = runs.get((senders, BASE), ())
        ratios = [mine.rate / other.rate for mine, other in zip(found, base, strict=bool(base)) if name != BASE]
        columns = [
            str(senders),
            name,
            f"{_median(found, lambda each: each.rate):,.0f}",
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f})" if ratios else "",
            f"{_median(found, lambda each: each.p99_ms):.1f}",
            *(f"{_median(found, lambda each, part=part: each.cpu_us[part]):,.1f}" for part in PARTS),  # type: ignore[misc]
            f"{_median(found, lambda each: each.other_cpu):.1f}",
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines) + "\n"


def memory_table(held: Mapping[str, Mapping[str, tuple[int, int]]]) -> str:
    """held: RSS and PSS in bytes, by name and part."""
    lines = ["| | part | RSS, MiB | PSS, MiB |", "|---|---|---|---|"]
    for name, parts in held.items():
        lines += [f"| {name} | {part} | {rss >> 20:,} | {pss >> 20:,} |" for part, (rss, pss) in parts.items()]
    return "\n".join(lines) + "\n"


def _median(runs: Sequence[LoadRun], figure: Callable[[LoadRun], float]) -> float:
    return statistics.median(figure(each) for each in runs)
