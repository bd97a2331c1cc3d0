"""How long a run takes, and what it does before it measures."""

from __future__ import annotations

import mmap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from appliance.bench.scenarios import BY_NAME, Scenario
from appliance.bench.setups import MANY_QUEUES, PLAIN

MANY_S = 600.0  # the first message of each of many queues makes a file
LEFT_BYTES = 1 << 30  # of free memory, for whatever else needs some meanwhile
PIECE_BYTES = 64 << 20
PAGE_BYTES = 4096
GROUP = Path("/sys/fs/cgroup")  # a container's own


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How long and how often. The defaults are the full run; `QUICK` is for a look."""

    rounds: int = 3
    start_rounds: int = 3
    warm_s: float = 0.5
    measure_s: float = 4.0
    latency_s: float = 10.0
    warm_up_messages: int = 150_000  # a JVM runs at half speed before about 100 000
    warm_up_s: float = 30.0
    pull_messages: int = 64_000
    idle_s: float = 5.0
    body_bytes: int = 1024
    patience: int = 0  # runs that are repeated because other work disturbed them, at most so often each


FULL = RunSettings()
QUICK = RunSettings(rounds=1, start_rounds=1, measure_s=2.0, latency_s=4.0, warm_up_s=10.0, idle_s=2.0)


class WarmUp(NamedTuple):
    """A load like a scenario's, of so many messages or so many seconds."""

    scenario: Scenario
    connections: int
    in_flight: int
    messages: int
    seconds: float


def warm_up_loads(scenarios: Sequence[Scenario], settings: RunSettings) -> Iterator[WarmUp]:
    """All kinds of requests of these scenarios, which have one setup: a JVM compiles what has run often."""
    messages, seconds = settings.warm_up_messages, settings.warm_up_s
    setup = scenarios[0].setup
    if setup.topics:
        yield WarmUp(scenarios[0], 16, 8, max(messages, 2 * setup.topics * MANY_QUEUES), MANY_S)
        return
    if setup != PLAIN:
        yield WarmUp(scenarios[0], scenarios[0].connections, scenarios[0].in_flight, messages, seconds)
        return
    kinds = {scenario.kind for scenario in scenarios}
    if kinds & {"send", "latency"}:
        yield WarmUp(BY_NAME["send-16x8"], 16, 8, messages, seconds)
    if "batch" in kinds:
        yield WarmUp(BY_NAME["batch-4x2"], 4, 2, 2 * messages, seconds)
    for scenario in [each for each in scenarios if each.kind == "pull"][:1]:
        yield WarmUp(replace(BY_NAME["batch-4x2"], topic=scenario.topic), 1, 1, settings.pull_messages, seconds)
        yield WarmUp(scenario, 8, 1, 4 * messages, seconds)
    for scenario in scenarios:
        if scenario.binary_headers:
            yield WarmUp(scenario, 16, 8, messages // 4, seconds)


class Touched(NamedTuple):
    """Memory that was used once. us_a_kb: CPU; far above 0.1 the machine had never used it."""

    size_bytes: int
    us_a_kb: float


def touch_free_memory(size_bytes: int | None = None) -> Touched:
    """Use all memory that is free, but for a GiB, or so many bytes of it, and give it back.

    A virtual machine's host hands out a page at its first use, and takes its time for that.
    """
    wanted = max(free_memory(Path("/proc/meminfo").read_text(), _group_room()) - LEFT_BYTES, 0)
    count = (wanted if size_bytes is None else min(size_bytes, wanted)) // PIECE_BYTES
    ones = b"\1" * (PIECE_BYTES // PAGE_BYTES)
    start = time.process_time()
    pieces = [mmap.mmap(-1, PIECE_BYTES) for _ in range(count)]  # all at once: else the same pages come again
    for piece in pieces:
        piece[::PAGE_BYTES] = ones
    used_s = time.process_time() - start
    for piece in pieces:
        piece.close()
    return Touched(count * PIECE_BYTES, used_s * 1e6 * 1024 / (count * PIECE_BYTES) if count else 0.0)


def free_memory(meminfo: str, group_room: int | None) -> int:
    """Bytes that no process and no file has, of the machine and of the control group (None: no limit)."""
    free = next((int(line.split()[1]) << 10 for line in meminfo.splitlines() if line.startswith("MemFree:")), 0)
    return free if group_room is None else min(free, group_room)


def _group_room() -> int | None:
    try:
        limit, used = ((GROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:  # no such group, or an older kernel
        return None
    return None if limit == "max" else max(int(limit) - int(used), 0)
