"""Repairing a stopped store: cut the log where its valid records end, make queues and index anew where they disagree.

The log is what counts; queues and index are made from it. Nothing is thrown away: what is cut or replaced is kept in
a folder beside the store (cut_folder). Damage with whole records behind it is not cut unless asked for, since that
takes those records along.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from store import file_bytes
from store.checkpoint import StoreLock
from store.cut_folder import CutFolder
from store.errors import StoreError, StoreLocked
from store.inspect.files import last_data
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.log_reader import BreakKind, LogBreak
from store.inspect.rebuild import rebuild_index, rebuild_queues
from store.inspect.verify import Progress, VerifyResult, verify_store

OpenFolder = Callable[[bool], StoreFolder]  # argument: is the lock ours


class RepairRefused(StoreError):
    """What is wrong can't be repaired without a loss that nobody asked for."""


@dataclass(frozen=True)
class RepairWish:
    """What the operator allows or wants beyond what is needed."""

    cut_at_damage: bool = False
    all_queues: bool = False
    index: bool = False


@dataclass
class RepairPlan:
    """What a repair would do; `refusal` says why it won't."""

    cut: LogBreak | None = None
    cut_reason: str = ""
    queues: list[tuple[str, int]] = field(default_factory=list)
    index: bool = False
    refusal: str = ""

    @property
    def is_empty(self) -> bool:
        return self.cut is None and not self.queues and not self.index

    def lines(self) -> list[str]:
        """The plan as sentences."""
        lines = [f"refused: {self.refusal}"] if self.refusal else []
        if self.cut is not None:
            lines.append(
                f"cut {self.cut.path} at position {self.cut.position}, and the files behind: {self.cut_reason}"
            )
            lines.append("then compare queues and index with what remains, and make those anew that disagree")
        lines += [f"make queue {topic}-{queue_id} anew from the log" for topic, queue_id in self.queues]
        if self.index:
            lines.append("make the index anew from the log")
        return lines or ["nothing to repair"]


def plan_repair(folder: StoreFolder, result: VerifyResult, wish: RepairWish | None = None) -> RepairPlan:
    """Say what would be done. StoreLocked when somebody has the store open."""
    if folder.state is StoreState.LIVE:
        raise StoreLocked(str(folder.root / "lock"))
    wish = wish or RepairWish()
    plan = RepairPlan()
    if result.damaged_at:
        first = result.damaged_at[0]
        if wish.cut_at_damage:
            plan.cut, plan.cut_reason = first, f"damage, and whole records behind it up to {result.log_end}"
        else:
            plan.refusal = (
                f"the log is damaged at offset {first.physical_offset} ({first.path.name}:{first.position}), and whole "
                f"records follow up to {result.log_end}; cutting there would take them along (--cut-at-damage)"
            )
    elif result.log_break.kind in (BreakKind.TORN, BreakKind.STALE):
        plan.cut, plan.cut_reason = result.log_break, f"{result.log_break.kind.value} tail"
    plan.queues = sorted(folder.queues) if wish.all_queues else sorted(result.bad_queues | result.stale_queues)
    plan.index = bool(result.is_index_bad or wish.index) and folder.index_shape is not None
    return plan


def repair_store(
    root: Path, open_folder: OpenFolder, wish: RepairWish, progress: Progress | None = None
) -> tuple[RepairPlan, CutFolder, VerifyResult]:
    """Lock the store, repair it, verify it again. StoreLocked, RepairRefused; OSError leaves what was kept in place."""
    lock = StoreLock(root / "lock")
    lock.acquire()
    try:
        kept = CutFolder(root)
        with open_folder(True) as folder:
            plan = plan_repair(folder, verify_store(folder, progress=progress), wish)
            if plan.refusal:
                raise RepairRefused(plan.refusal)
            if plan.cut is not None:
                _cut_log(folder, plan.cut, plan.cut_reason, kept)
        if plan.cut is not None:  # fewer messages: look again which queues name them
            with open_folder(True) as folder:
                second = plan_repair(folder, verify_store(folder, progress=progress), wish)
                plan.queues, plan.index = second.queues, second.index
        with open_folder(True) as folder:
            if plan.queues:
                rebuild_queues(folder, plan.queues, kept)
            if plan.index:
                rebuild_index(folder, kept)
        with open_folder(True) as folder:
            return plan, kept, verify_store(folder, progress=progress)
    finally:
        lock.release()


def _cut_log(folder: StoreFolder, cut: LogBreak, reason: str, kept: CutFolder) -> None:
    """Keep what lies behind the end, then erase it; the disk has the copies before anything is erased."""
    for file in folder.log.files:
        if file.end <= cut.physical_offset:
            continue
        if file.base >= cut.physical_offset:
            if last_data(folder.reader, file.path, 0, file.size) >= 0:
                kept.keep_whole(file.path, file.base, reason)
            continue
        position = cut.physical_offset - file.base
        kept.keep_end(file.path, position, file.base, reason)
        modified_ns = file.path.stat().st_mtime_ns
        fd = os.open(file.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            file_bytes.zero_range(fd, position, file.size)
            os.fdatasync(fd)
        finally:
            os.close(fd)
        os.utime(file.path, ns=(modified_ns, modified_ns))  # retention goes by it
