"""Where the broker's time goes: a cProfile file, summed up by stage of processing.

cProfile exaggerates the cost of small functions: use the shares to find expensive stages, and plain runs for absolute
times.
"""

from __future__ import annotations

import pstats
from collections import Counter
from pathlib import Path
from typing import Any

# The first matching prefix of a module's path decides its stage; the time of C functions counts for their callers.
STAGES = (
    ("gantrymq/remoting/", "header: decode, encode"),
    ("appliance/remoting/", "connection: read, lanes, write"),
    ("appliance/broker/processors/", "processors"),
    ("appliance/broker/status/stats", "statistics"),
    ("appliance/broker/", "broker tables"),
    ("gantrymq/message/", "records, properties"),
    ("store/appender", "store: append"),
    ("store/batch", "store: append"),
    ("store/view", "store: read"),
    ("store/reader", "store: read"),
    ("store/log/", "store: commit log"),
    ("store/queues/", "store: consume queue"),
    ("store/index/", "store: index"),
    ("store/", "store: other"),
    ("asyncio/", "event loop"),
)
_TOP = 25
_FunctionKey = tuple[str, int, str]


def render_profile(path: Path) -> str:
    """The time by stage, then the most expensive functions."""
    stats = pstats.Stats(str(path))
    table: dict[_FunctionKey, Any] = stats.stats  # type: ignore[attr-defined]
    stages = split_by_stage(table)
    total = sum(stages.values()) or 1.0
    lines = ["stage                               seconds  share", "----------------------------------  -------  -----"]
    lines += [f"{stage:<34}  {seconds:7.2f}  {seconds / total:5.1%}" for stage, seconds in stages.most_common()]
    lines += ["", "function                                                       calls  us each  share"]
    dearest = sorted(table.items(), key=lambda item: item[1][2], reverse=True)[:_TOP]
    for function, (_, calls, own_s, _, _) in dearest:
        name = _short_name(function)
        lines.append(f"{name:<58} {calls:>9}  {own_s / calls * 1e6:7.2f}  {own_s / total:5.1%}")
    return "\n".join(lines)


def split_by_stage(table: dict[_FunctionKey, Any]) -> Counter[str]:
    """Own time of every function, by stage; the time of C functions goes to the stages of their callers."""
    stages: Counter[str] = Counter()
    for function, (_, _, own_s, _, callers) in table.items():
        if function[0] != "~":
            stages[stage_of(function)] += own_s
            continue
        told = 0.0
        for caller, (_, _, caller_own_s, _) in callers.items():
            stages[stage_of(caller)] += caller_own_s
            told += caller_own_s
        stages["event loop"] += max(own_s - told, 0.0)  # called from C: the loop itself
    return stages


def stage_of(function: _FunctionKey) -> str:
    path = function[0].replace("\\", "/")
    for part, stage in STAGES:
        if f"/{part}" in path:
            return stage
    return "event loop" if path == "~" else "other"


def _short_name(function: _FunctionKey) -> str:
    path, line, name = function
    return name if path == "~" else f"{'/'.join(Path(path).parts[-2:])}:{line} {name}"
