"""What three brokers accept a second, and what a message costs all their processes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from appliance.bench import rpc
from appliance.bench.load_spec import Load, LoadSpec
from appliance.bench.processes import machine_busy_s, sum_smaps
from appliance.bench.run import load_cpu_s
from gantrymq.errors import GantryError
from tests.bench.group.threes import QUEUES, Three

WARM_S = 0.5


@dataclass(frozen=True, slots=True)
class LoadRun:
    """Of one load. cpu_us: a message, by the processes' part; other_cpu: cores that other work took meanwhile."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: Mapping[str, float]
    other_cpu: float
    errors: Mapping[str, int]

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def one_load(three: Three, load: Load, topic: str, senders: int, measure_s: float) -> LoadRun:
    """Senders that wait for each answer, 1 KB each; until all three have all. GantryError where some is missing."""
    os.sync()  # what the last run left dirty must not be written during this one
    master, pids = three.settled(), three.pids()
    stored = _stored(master, topic)
    cpu_s, busy_s, loads_s, start = _cpu_s(pids), machine_busy_s(), load_cpu_s(), time.monotonic()
    spec = LoadSpec(
        kind="send", address=master, topic=topic, queue_count=QUEUES, connections=senders, warm_s=WARM_S,
        measure_s=measure_s,
    )  # fmt: skip
    result = load.run(spec)
    three.settled()
    used = {part: after - cpu_s[part] for part, after in _cpu_s(pids).items()}
    other_s = machine_busy_s() - busy_s - sum(used.values()) - (load_cpu_s() - loads_s)
    if (found := _stored(master, topic) - stored) < result.acknowledged:
        raise GantryError(f"{result.acknowledged} acknowledged, {found} stored")
    return LoadRun(
        rate=result.rate,
        p50_ms=result.p50_ms,
        p99_ms=result.p99_ms,
        cpu_us={part: seconds / result.acknowledged * 1e6 for part, seconds in used.items()},
        other_cpu=max(other_s, 0.0) / (time.monotonic() - start),
        errors=result.errors,
    )


def memory(three: Three, folder: Path) -> dict[str, tuple[int, int]]:
    """RSS and PSS in bytes of each part, without the files of its stores, which are below the folder."""
    found = {}
    for part, pids in three.pids().items():
        uses = [sum_smaps(Path(f"/proc/{pid}/smaps").read_text(), str(folder.resolve())) for pid in pids]
        found[part] = (sum(each.rss_bytes for each in uses), sum(each.pss_bytes for each in uses))
    return found


def _cpu_s(pids: Mapping[str, list[int]] | Mapping[str, Any]) -> dict[str, float]:
    return {part: sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in each) for part, each in pids.items()}


def _stored(master: str, topic: str) -> int:
    """Once that stands still: Java's queues follow its commit log at a distance."""
    counted, still = -1, 0
    while still < 5:
        now = sum(rpc.max_offsets(master, topic, QUEUES))
        counted, still = now, still + 1 if now == counted else 0
        time.sleep(0.1)
    return counted
