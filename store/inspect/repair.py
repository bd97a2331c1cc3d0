"""Repairing a stopped store: cut the log where its valid records end, rebuild queues and index where they disagree.

The log is what counts; queues and index are made from it. Nothing is thrown away: what is cut or replaced is kept in
a folder beside the store (cut_folder). Damage with whole records behind it is not cut unless asked for, since that
takes those records along.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gantrymq.message import record
from store.base import file_bytes
from store.base.cut_folder import CutFolder
from store.base.errors import StoreError, StoreLocked
from store.inspect.check import missing_end, missing_start
from store.inspect.files import last_data, usual_size
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.log_reader import BreakKind, LogBreak
from store.inspect.lost_files import foreign_file, lost_files, put_blank_files, skip_to_next_file
from store.inspect.rebuild import rebuild_index, rebuild_queues
from store.inspect.verify import Progress, VerifyResult, verify_store
from store.startup.checkpoint import NOT_KNOWN, NOT_SYNCED, StoreLock
from store.startup.format_stamp import STORE, check_format

LINES_MAX = 5

OpenFolder = Callable[[bool], StoreFolder]  # argument: does this process hold the lock


class RepairRefused(StoreError):
    """The damage can't be repaired without a loss that the operator has not agreed to."""


@dataclass(frozen=True)
class RepairOptions:
    """What the operator allows or wants beyond what is needed."""

    cut_at_damage: bool = False
    skip_lost: bool = False  # go on without the messages of files that are missing, and of damaged ends of files
    all_queues: bool = False
    index: bool = False


@dataclass
class RepairPlan:
    """What a repair would do; `refusal` says why it won't."""

    cut: LogBreak | None = None
    cut_reason: str = ""
    lost: list[str] = field(default_factory=list)  # of the log: what is put right without bringing anything back
    queues: list[tuple[str, int]] = field(default_factory=list)
    index: bool = False
    refusal: str = ""

    @property
    def is_empty(self) -> bool:
        return self.cut is None and not self.lost and not self.queues and not self.index

    def lines(self) -> list[str]:
        """The plan as sentences."""
        lines = [f"refused: {self.refusal}"] if self.refusal else []
        lines += [f"go on without what is lost: {text}" for text in self.lost[:LINES_MAX]]
        if len(self.lost) > LINES_MAX:
            lines.append(f"go on without what is lost: {len(self.lost) - LINES_MAX} more files")
        if self.cut is not None:
            lines.append(
                f"cut {self.cut.path} at position {self.cut.position}, and the files behind: {self.cut_reason}"
            )
        if self.lost or self.cut is not None:
            lines.append("then compare queues and index with what remains, and rebuild those that disagree")
        lines += [f"rebuild queue {topic}-{queue_id} from the log" for topic, queue_id in self.queues]
        if self.index:
            lines.append("rebuild the index from the log")
        return lines or ["nothing to repair"]


def plan_repair(folder: StoreFolder, result: VerifyResult, options: RepairOptions | None = None) -> RepairPlan:
    """Return what would be done. StoreLocked when a process has the store open."""
    if folder.state is StoreState.LIVE:
        raise StoreLocked(str(folder.root / "lock"))
    options = options or RepairOptions()
    plan = RepairPlan()
    if foreign := foreign_file(folder):
        plan.refusal = (
            f"{foreign} and is hardly a file of this log: move it away, or restore what is missing, then try again"
        )
        return plan
    lost = [each.text(usual_size(folder.log.files)) for each in lost_files(folder.log.files)] or missing_end(folder)
    lost = missing_start(folder) + lost
    if lost and not options.skip_lost:
        more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
        plan.refusal = (
            f"in the commit log {lost[0]}{more}: restore what is missing, or skip it (--skip-lost): messages "
            "in there are lost then"
        )
        return plan
    plan.lost = lost
    if plan.lost:
        return plan
    if result.damaged_at:
        first = result.damaged_at[0]
        if options.skip_lost and all(_reaches_end(folder, each) for each in result.damaged_at):
            plan.lost = [f"{each.path.name} from position {each.position} on" for each in result.damaged_at]
            return plan
        if options.cut_at_damage:
            plan.cut, plan.cut_reason = first, f"damage, and whole records behind it up to {result.log_end}"
        else:
            plan.refusal = (
                f"the log is damaged at offset {first.physical_offset} ({first.path.name}:{first.position}), and whole "
                f"records follow up to {result.log_end}; cutting there would take them along (--cut-at-damage)"
                + ("; --skip-lost keeps them" if all(_reaches_end(folder, each) for each in result.damaged_at) else "")
            )
    elif result.log_break.kind in (BreakKind.TORN, BreakKind.STALE):
        plan.cut, plan.cut_reason = result.log_break, f"{result.log_break.kind.value} tail"
    plan.queues = sorted(folder.queues) if options.all_queues else sorted(result.bad_queues | result.stale_queues)
    plan.index = bool(result.is_index_bad or options.index) and folder.index_shape is not None
    return plan


def repair_store(
    root: Path, open_folder: OpenFolder, options: RepairOptions, progress: Progress | None = None
) -> tuple[RepairPlan, CutFolder, VerifyResult]:
    """Lock the store, repair it, verify it again. OSError leaves what was kept in place.

    StoreLocked, NewerFormat, RepairRefused.
    """
    lock = StoreLock(root / "lock")
    lock.acquire()
    try:
        check_format(root, STORE)
        kept = CutFolder(root)
        with open_folder(True) as folder:
            plan = plan_repair(folder, verify_store(folder, progress=progress), options)
            if plan.refusal:
                raise RepairRefused(plan.refusal)
        steps = plan
        while steps.lost or steps.cut is not None:  # the log changes: look again, also which queues name what is gone
            with open_folder(True) as folder:
                _forget_ends(folder)
                if steps.cut is not None:
                    _cut_log(folder, steps.cut, steps.cut_reason, kept)
                elif lost_files(folder.log.files):
                    put_blank_files(folder, kept)
                else:
                    damaged = verify_store(folder, progress=progress).damaged_at
                    for damage in (each for each in damaged if _reaches_end(folder, each)):
                        skip_to_next_file(damage, usual_size(folder.log.files), kept)
            with open_folder(True) as folder:
                steps = plan_repair(folder, verify_store(folder, progress=progress), options)
                if steps.refusal:
                    raise RepairRefused(steps.refusal)
                plan.lost += steps.lost
                plan.cut, plan.cut_reason = (steps.cut, steps.cut_reason) if steps.cut else (plan.cut, plan.cut_reason)
                plan.queues, plan.index = steps.queues, steps.index
        with open_folder(True) as folder:
            if plan.queues or plan.index:
                _forget_ends(folder)
            if plan.queues:
                rebuild_queues(folder, plan.queues, kept)
            if plan.index:
                rebuild_index(folder, kept)
        with open_folder(True) as folder:
            return plan, kept, verify_store(folder, progress=progress)
    finally:
        lock.release()


def _reaches_end(folder: StoreFolder, damage: LogBreak) -> bool:
    """Whether no whole record follows in the damaged file itself, and a blank record fits where the damage begins."""
    file = folder.log.find(damage.physical_offset)
    return file is not None and damage.resumes_at >= file.end and damage.position + record.BLANK.size <= file.size


def _forget_ends(folder: StoreFolder) -> None:
    """The next start must not take for lost what this repair takes away, or what the operator puts up with."""
    checkpoint = folder.checkpoint
    before = (checkpoint.synced, checkpoint.kept_from)
    checkpoint.synced = NOT_SYNCED
    if not folder.log.files:
        checkpoint.physic_ms = checkpoint.logics_ms = checkpoint.index_ms = 0
        checkpoint.keep_from(NOT_KNOWN)
    elif checkpoint.kept_from != NOT_KNOWN:
        checkpoint.keep_from(max(checkpoint.kept_from, folder.log.min_offset))
    if folder.log.files and before == (checkpoint.synced, checkpoint.kept_from):
        return
    checkpoint.save()


def _cut_log(folder: StoreFolder, cut: LogBreak, reason: str, kept: CutFolder) -> None:
    """Keep what lies behind the end, then erase it; the disk has the copies before anything is erased."""
    for file in reversed(folder.log.files):  # the last first: should this be interrupted, no file is missing in between
        if file.end <= cut.physical_offset:
            continue
        if file.base >= cut.physical_offset:
            if last_data(folder.reader, file.path, 0, file.size) >= 0:
                kept.keep_whole(file.path, file.base, reason)
            continue
        position = cut.physical_offset - file.base
        kept.keep_end(file.path, position, file.base, reason)
        modified_ns = file.path.stat().st_mtime_ns
        with file_bytes.closed_after(os.open(file.path, os.O_RDWR | os.O_CLOEXEC)) as fd:
            file_bytes.zero_range(fd, position, file.size)
            os.fdatasync(fd)
        os.utime(file.path, ns=(modified_ns, modified_ns))  # retention goes by it
