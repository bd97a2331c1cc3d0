"""Our proxy and broker against RocketMQ's own 5.5.0, in turn, on the same cores.

`python -m tests.interop.grpc.load.compare` prints a table of what `load` (in go/) saw. It takes some ten minutes and
needs Java, Maven and Go.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from appliance.bench import rpc
from appliance.bench.gantry_peer import FAST_PATH_OFF, GantryPeer
from appliance.bench.peer import Peer
from appliance.bench.processes import sum_smaps
from tests.faults.grpc.proxy_process import proxy_process
from tests.interop.build_cache import built, digest, tool
from tests.interop.grpc.load.upstream import Upstream

GO = Path(__file__).parents[1] / "go"
QUEUES = 8
LOADS = {
    "warm-up": ("send", 32, 0.0),
    "send 1 KiB, 32 callers": ("send", 32, 0.0),
    "receive and acknowledge, 32 callers": ("receive", 32, 0.0),
    "send at 500/s": ("send", 32, 500.0),
}


class Seen(NamedTuple):
    """What one load gave."""

    count: int
    seconds: float
    median_ms: float
    p99_ms: float
    refused: float


def program() -> Path:
    """The load program, compiled."""

    def build(folder: Path) -> None:
        command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-o", str(folder / "load"), "./load"]
        tool(command, cwd=GO, environment={"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"})

    files = [GO / name for name in ("load/main.go", "go.mod", "go.sum")]
    return built(f"interop-grpc-load-{digest(files)}", build) / "load"


def load(port: int, mode: str, seconds: float, callers: int, rate: float) -> Seen:
    command = [program(), f"127.0.0.1:{port}", mode, "load", str(seconds), str(callers), str(rate)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 5 + 60, check=False)
    if done.returncode:
        raise SystemExit(f"the load failed: {done.stderr[-500:]}")
    count, *rest = done.stdout.split()
    return Seen(int(count), *map(float, rest))


@contextlib.contextmanager
def ours(folder: Path, *, is_compiled: bool) -> Iterator[tuple[Peer, int, int]]:
    """A peer, the port of its proxy, the process that it is."""
    environment = {} if is_compiled else FAST_PATH_OFF
    with (
        GantryPeer(folder, environment=environment) as peer,
        proxy_process(peer.namesrv_address, folder / "proxy.log", environment=environment) as (process, port),
    ):
        yield peer, port, process.pid


@contextlib.contextmanager
def theirs(folder: Path) -> Iterator[tuple[Peer, int, int]]:
    with Upstream(folder, heap="1g") as peer:
        process, port = peer.start_proxy()
        try:
            yield peer, port, process.pid
        finally:
            process.kill()


def measured(peer: Peer, port: int, pid: int, seconds: float) -> dict[str, float]:
    rpc.create_topic(peer.broker_address, "load", QUEUES)
    found: dict[str, float] = {}
    for name, (mode, callers, rate) in LOADS.items():
        busy_s = cpu_s(pid)
        seen = load(port, mode, seconds, callers, rate)
        found[f"{name}: us of the proxy's CPU"] = (cpu_s(pid) - busy_s) / seen.count * 1e6
        if seen.refused:
            print(f"{peer.label}, {name}: {seen.refused:.0f} calls refused as too many", flush=True)
        found[f"{name}: 1/s"] = seen.count / seen.seconds
        found[f"{name}: p99 ms"] = seen.p99_ms
    proxy = sum_smaps(Path(f"/proc/{pid}/smaps").read_text(), str(peer.store)).pss_bytes
    broker = peer.broker.memory(peer.store).pss_bytes
    found["memory of the proxy, MiB"] = proxy / 2**20
    found["memory of proxy and broker, MiB"] = (proxy + broker) / 2**20
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("ours", "plain", "upstream"), action="append")
    options = parser.parse_args()
    kinds = {
        "ours": lambda folder: ours(folder, is_compiled=True),
        "plain": lambda folder: ours(folder, is_compiled=False),
        "upstream": theirs,
    }
    kinds = {kind: run for kind, run in kinds.items() if not options.only or kind in options.only}
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind, run in kinds.items():
            with tempfile.TemporaryDirectory() as folder, run(Path(folder)) as (peer, port, pid):
                found[kind].append(measured(peer, port, pid, options.seconds))
            print(kind, {name: round(value, 1) for name, value in found[kind][-1].items()}, flush=True)
    for name in found[next(iter(kinds))][0]:
        medians = {kind: statistics.median(one[name] for one in many) for kind, many in found.items()}
        print(name, *(f"{kind} {value:.1f}" for kind, value in medians.items()), sep="\t")


if __name__ == "__main__":
    main()
