"""`gantry bench store`: stages, stalls, our store beside Apache's, recovery, as one text and one JSON object."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from appliance.bench.peer import Peer
from appliance.bench.store_peer import Load, MakeCommand, PeerCost, measure_store, render_peers
from appliance.bench.store_recovery import Reopened, measure_recovery
from appliance.bench.store_stages import Stage, StoreStages
from appliance.bench.store_stalls import Stalls, Turn, measure_stalls

MIB = 1 << 20
T = TypeVar("T")
MakeRecoveryPeer = Callable[[Path], Peer]


class StoreBench:
    """Runs the four parts in folders below `work`. `say` gets a line whenever something has been done."""

    def __init__(
        self, work: Path, say: Callable[[str], None], *, count: int, total_bytes: int, stall_bytes: int, stall_rate: int
    ) -> None:
        self._work = work
        self._say = say
        self._count = count
        self._total_bytes = total_bytes
        self._stall_bytes = stall_bytes
        self._stall_rate = stall_rate

    def run(self, peers: dict[str, MakeRecoveryPeer], stores: dict[str, MakeCommand]) -> tuple[str, dict[str, Any]]:
        """Return the table, and the same figures for a file. peers: brokers; stores: programs that drive one alone."""
        stages = self._in_folder(lambda folder: StoreStages(folder, self._count).run())
        self._say("stages measured")
        stalls = {
            title: self._in_folder(
                lambda folder, flush=flush: measure_stalls(  # type: ignore[misc]
                    folder, self._stall_bytes, self._stall_rate, flush=flush
                )
            )
            for title, flush in (("flushed every 500 ms", True), ("never flushed, all of it dirty", False))
        }
        self._say("stalls measured")
        alone: dict[str, list[PeerCost]] = {}
        for label, make_command in stores.items():

            def measure(folder: Path, make: MakeCommand = make_command) -> list[PeerCost]:
                folder.mkdir()
                return measure_store(make(folder), folder, Load(self._count, self._total_bytes))

            alone[label] = self._in_folder(measure)
        self._say("stores alone measured")
        reopened: dict[str, list[Reopened]] = {}
        versions: dict[str, str] = {}
        for label, make in peers.items():

            def reopen(folder: Path, label: str = label, make: MakeRecoveryPeer = make) -> list[Reopened]:
                peer = make(folder)
                versions[label] = peer.version
                return measure_recovery(peer, self._total_bytes, self._say)

            reopened[label] = self._in_folder(reopen)
        parts = [_stages(stages), _stalls(stalls), render_peers(alone)] if alone else [_stages(stages), _stalls(stalls)]
        text = "\n\n".join([*parts, _recovery(reopened, versions, self._total_bytes)])
        return text + "\n", {
            "stages": [stage._asdict() for stage in stages],
            "stalls": {title: _plain_stalls(found) for title, found in stalls.items()},
            "alone": {label: [cost._asdict() for cost in costs] for label, costs in alone.items()},
            "recovery": {label: [each._asdict() for each in found] for label, found in reopened.items()},
            "peers": versions,
        }

    def _in_folder(self, work: Callable[[Path], T]) -> T:
        with tempfile.TemporaryDirectory(prefix="store-", dir=self._work) as folder:
            return work(Path(folder) / "store")


def _stages(stages: list[Stage]) -> str:
    lines = ["stage (CPU time, best round)                                us"]
    lines += [f"{stage.name:<54}{stage.us:>8.2f}   {stage.note}".rstrip() for stage in stages]
    return "\n".join(lines)


def _stalls(stalls: dict[str, Stalls]) -> str:
    lines = ["turns of the loop under load; own time: without what other processes took of the core"]
    for title, found in stalls.items():
        lines.append(
            f"{title}: {found.rate_bytes / MIB:.0f} MiB/s, {found.turns:,} turns, "
            f"at most {found.dirty_bytes_max / MIB:.0f} MiB not synced; "
            f"over 5 ms: {found.long_turns} own, {found.long_cpu_turns} CPU"
        )
        lines.append("  longest, own: " + ", ".join(map(_turn, found.longest)))
        lines.append("  longest, CPU: " + ", ".join(map(_turn, found.longest_cpu)))
    return "\n".join(lines)


def _turn(turn: Turn) -> str:
    return f"{turn.own_s * 1e3:.1f} ms (CPU {turn.cpu_s * 1e3:.1f}) at {turn.position / MIB:.0f} MiB"


def _recovery(reopened: dict[str, list[Reopened]], versions: dict[str, str], total_bytes: int) -> str:
    lines = [f"start on {total_bytes / MIB:.0f} MiB until the first answer      broker   wall s    CPU s    ratio"]
    ours = {each.what: each for each in reopened.get("gantry", [])}
    for label, found in reopened.items():
        for each in found:
            ratio = f"{ours[each.what].wall_s / each.wall_s:8.2f}" if label != "gantry" and each.what in ours else ""
            lines.append(f"{each.what:<46}{label:>8}{each.wall_s:9.2f}{each.cpu_s:9.2f} {ratio}".rstrip())
    lines.append("ratio: ours / theirs, less is better. " + ", ".join(versions.values()))
    return "\n".join(lines)


def _plain_stalls(stalls: Stalls) -> dict[str, Any]:
    plain = stalls._asdict()
    for name in ("longest", "longest_cpu"):
        plain[name] = [turn._asdict() for turn in plain[name]]
    return plain
