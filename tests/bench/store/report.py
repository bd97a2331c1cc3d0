"""`python -m tests.bench.store`: stages, stalls, recovery, as one text and one JSON object."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from appliance.bench.load_spec import Load
from appliance.bench.peer import Peer
from tests.bench.store import disk_load, machine_load
from tests.bench.store.recovery import Reopened, measure_recovery
from tests.bench.store.stages import Stage, StoreStages
from tests.bench.store.stalls import FLUSH_INTERVAL_S, Stalls, Turn, measure_stalls

MIB = 1 << 20
QUIET_S = 3.0  # the kernel hands memory back two seconds after it became free
PATIENCE_S = 30.0
MEMORY = Path("/dev/shm")
CONTROL = "control: files in memory, another process loads the disk"
T = TypeVar("T")
MakeRecoveryPeer = Callable[[Path], Peer]


class StoreBench:
    """Runs the three parts in folders below `work`. `say` gets a line whenever something has been done."""

    def __init__(
        self,
        work: Path,
        say: Callable[[str], None],
        load: Load,
        *,
        count: int,
        total_bytes: int,
        stall_bytes: int,
        stall_rate: int,
    ) -> None:
        self._work = work
        self._load = load
        self._say = say
        self._count = count
        self._total_bytes = total_bytes
        self._stall_bytes = stall_bytes
        self._stall_rate = stall_rate

    def run(self, peers: dict[str, MakeRecoveryPeer]) -> tuple[str, dict[str, Any]]:
        """Return the tables, and the same numbers for a file. peers: the brokers that are opened again."""
        stages = self._in_folder(lambda folder: StoreStages(folder, self._count).run())
        self._say("stages measured")
        stalls = {
            title: self._in_folder(
                lambda folder, flush=flush: self._stalls(folder, flush=flush)  # type: ignore[misc]
            )
            for title, flush in (("flushed every 500 ms", True), ("never flushed, all of it dirty", False))
        }
        if (control := self._control()) is not None:
            stalls[CONTROL] = control
        self._say("stalls measured")
        reopened: dict[str, list[Reopened]] = {}
        versions: dict[str, str] = {}
        for label, make in peers.items():

            def reopen(folder: Path, label: str = label, make: MakeRecoveryPeer = make) -> list[Reopened]:
                peer = make(folder)
                versions[label] = peer.version
                return measure_recovery(peer, self._load, self._total_bytes, self._say)

            reopened[label] = self._in_folder(reopen)
        text = "\n\n".join([_stages(stages), _stalls(stalls), _recovery(reopened, versions, self._total_bytes)])
        return text + "\n", {
            "stages": [stage._asdict() for stage in stages],
            "stalls": {title: _plain_stalls(found) for title, found in stalls.items()},
            "recovery": {label: [each._asdict() for each in found] for label, found in reopened.items()},
            "peers": versions,
        }

    def _control(self) -> Stalls | None:
        """Stalls of a store that has nothing to do with the disk, while the disk is as busy as before."""
        needed = self._stall_bytes * 5 // 4 + (256 << 20)  # queues and index too
        if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < needed or _available_bytes() < 2 * needed:
            self._say(f"no control for the stalls: {MEMORY} or the memory has no room for {needed / MIB:.0f} MiB")
            return None
        loaded = self._work / "disk-load"
        with (
            tempfile.TemporaryDirectory(prefix="gantry-bench-", dir=MEMORY) as folder,
            disk_load.running(loaded, self._stall_bytes, self._stall_rate, FLUSH_INTERVAL_S),
        ):
            return self._stalls(Path(folder) / "store", flush=True)

    def _stalls(self, folder: Path, *, flush: bool) -> Stalls:
        machine_load.settle(QUIET_S, PATIENCE_S)
        return measure_stalls(folder, self._stall_bytes, self._stall_rate, flush=flush)

    def _in_folder(self, work: Callable[[Path], T]) -> T:
        with tempfile.TemporaryDirectory(prefix="store-", dir=self._work) as folder:
            return work(Path(folder) / "store")


def _stages(stages: list[Stage]) -> str:
    lines = ["stage (CPU time, best round)                                us"]
    lines += [f"{stage.name:<54}{stage.us:>8.2f}   {stage.note}".rstrip() for stage in stages]
    return "\n".join(lines)


def _stalls(stalls: dict[str, Stalls]) -> str:
    lines = [
        "turns of the loop under load. own: CPU and waiting; not the store's are run delay (others had the core) and",
        "stolen (the hypervisor had it). CPU has in it what a hypervisor does unseen, such as taking memory away: what",
        "the control shows, too, is the machine's; without the machine's part its turns take as long as the others'",
    ]
    for title, found in stalls.items():
        lines.append(
            f"{title}: {found.rate_bytes / MIB:.0f} MiB/s, {found.turns:,} turns, "
            f"at most {found.dirty_bytes_max / MIB:.0f} MiB not synced; "
            f"over 5 ms: {found.long_turns} own ({found.long_cpu_turns} by CPU alone), {found.long_wall_turns} by the "
            f"clock; the machine meanwhile: {found.taken.stolen_s:.2f} s stolen, memory handed back to the hypervisor "
            f"{found.taken.handed_back} times"
        )
        lines.append("  longest, own: " + ", ".join(map(_own, found.longest)))
        lines.append("  longest by the clock: " + ", ".join(map(_wall, found.longest_wall)))
    return "\n".join(lines)


def _own(turn: Turn) -> str:
    return (
        f"{turn.own_s * 1e3:.1f} ms (CPU {turn.cpu_s * 1e3:.1f}, {turn.faults} faults) at {turn.position / MIB:.0f} MiB"
    )


def _wall(turn: Turn) -> str:
    parts = f"own {turn.own_s * 1e3:.1f}, run delay {turn.delay_s * 1e3:.1f}, stolen {turn.stolen_s * 1e3:.1f}"
    return f"{turn.wall_s * 1e3:.1f} ms ({parts})"


def _available_bytes() -> int:
    """Memory that could be had without swapping; 0 when the kernel doesn't say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)


def _recovery(reopened: dict[str, list[Reopened]], versions: dict[str, str], total_bytes: int) -> str:
    lines = [f"start on {total_bytes / MIB:.0f} MiB until the first answer      broker   wall s    CPU s    ratio"]
    base = {each.what: each for each in reopened.get("gantry", [])}
    for label, found in reopened.items():
        for each in found:
            ratio = f"{base[each.what].wall_s / each.wall_s:8.2f}" if label != "gantry" and each.what in base else ""
            lines.append(f"{each.what:<46}{label:>8}{each.wall_s:9.2f}{each.cpu_s:9.2f} {ratio}".rstrip())
    lines.append("ratio: GantryMQ / Apache, lower is better. " + ", ".join(versions.values()))
    return "\n".join(lines)


def _plain_stalls(stalls: Stalls) -> dict[str, Any]:
    plain = stalls._asdict()
    for name in ("longest", "longest_wall"):
        plain[name] = [turn._asdict() for turn in plain[name]]
    plain["taken"] = stalls.taken._asdict()
    return plain
