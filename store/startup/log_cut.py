"""Finding where the log's valid records end, and ending it there. What a start erases there it says aloud, and keeps.

RocketMQ cuts in silence. Here a torn tail, and even more so whole records behind damage, go to a folder beside the
store (cut_folder) before they are erased. Torn tails come with every power cut: of them the last few are kept. Whole
records are kept for good, and if they can't be, the start is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from gantrymq.errors import RecordError
from gantrymq.message import record
from store.base import file_bytes
from store.base.cut_folder import CutFolder, forget_oldest
from store.base.errors import StoreDamaged
from store.log.commit_log import CommitLog
from store.log.mapped_file import MappedFile
from store.log.scan import OnPlainRecords, OnRecord, Progress, scan_file

logger = logging.getLogger(__name__)

LOOK_BEHIND_BYTES = 64 << 20
TAIL_BYTES_MAX = 64 << 20  # of what holds no whole record; a record is a few MiB at most
TORN_FOLDERS_MAX = 8


def end_log(log: CommitLog, end: int, root: Path, *, is_other_log: bool = False) -> None:
    """The log ends at `end`: keep what lies behind, erase it. StoreDamaged when whole records can't be kept.

    is_other_log: what lies behind is sound, and not in the log that this one copies from now on.
    """
    # Nothing that may be an acknowledged message is erased before it is kept beside the store, with the note that says
    # where it was. When that fails the start is refused, before `start_at` erases.
    file = log.queue.find(end)
    if file is not None:
        position = end - file.base
        data_from = position + record.BLANK.size if ends_with_blank(file, end) else position
        has_tail = file_bytes.has_data(file.path, data_from, file.size)
        behind = [each for each in log.queue.files if each.base > end]
        if has_tail or any(_has_data(each) for each in behind):
            if is_other_log:
                _keep_readable(root, file, position, behind)
            else:
                _keep(root, file, position, behind, has_tail=has_tail)
    log.start_at(end)


def _keep_readable(root: Path, file: MappedFile, position: int, behind: list[MappedFile]) -> None:
    """Keep sound records so that `gantry store dump` reads them there: in files of their own names, at their places."""
    folder = CutFolder(root, "cut")
    reason = "not in the log of the master that this store follows"
    try:
        folder.keep_end(file.path, position, file.base, reason, is_in_place=True)
        for each in behind:
            if _has_data(each):
                folder.keep_end(each.path, 0, each.base, reason, is_in_place=True)
    except OSError as exc:
        raise StoreDamaged(
            str(file.path),
            f"what lies behind position {position} is not in the master's log, and can't be kept in {folder.path} "
            f"({exc}); make room there",
        ) from exc
    logger.warning(
        "commit log cut where the master's log differs",
        extra={
            "event": "commit_log_cut_at_joint",
            "path": str(file.path),
            "physical_offset": file.base + position,
            "kept_in": str(folder.path),
        },
    )


def _keep(root: Path, file: MappedFile, position: int, behind: list[MappedFile], *, has_tail: bool) -> None:
    # A torn tail is the rest of a write that was never acknowledged: its copy may fail. A whole record behind damage
    # may have been acknowledged: it is kept, or the start is refused.
    survivors = _records_behind(file, position)
    files_with_records = sum(1 for each in behind if any(records_of(each, 0, check_crc=True)))
    is_loss = bool(survivors or files_with_records)
    folder = CutFolder(root, "cut" if is_loss else "torn")
    reason = "whole records behind damage" if is_loss else "torn tail"
    facts: dict[str, object] = {"kept_in": str(folder.path)}
    try:
        if has_tail:
            folder.keep_end(file.path, position, file.base, reason, None if is_loss else TAIL_BYTES_MAX)
        for each in reversed(behind):  # the last first: should this be interrupted, no file is missing in between
            if _has_data(each):
                each.close()
                folder.keep_whole(each.path, each.base, reason)
            else:  # made in advance, or its bytes never reached the disk
                each.delete()
                file_bytes.sync_folder(each.path.parent)
    except OSError as exc:
        if is_loss:
            raise StoreDamaged(
                str(file.path),
                f"damaged at position {position}, with whole records behind, and those can't be kept in {folder.path} "
                f"({exc}); make room there, or copy the store and cut it with `gantry store repair --cut-at-damage`",
            ) from exc
        facts = {"kept_in": None, "error": str(exc)}
    logger.log(
        logging.ERROR if is_loss else logging.WARNING,
        "commit log cut",
        extra={
            "event": "commit_log_cut",
            "path": str(file.path),
            "position": position,
            "physical_offset": file.base + position,
            "whole_records_behind": survivors,
            "files_with_records_behind": files_with_records,
            **facts,
        },
    )
    if not is_loss:
        forget_oldest(root, "torn", TORN_FOLDERS_MAX)


def _has_data(file: MappedFile) -> bool:
    return file_bytes.has_data(file.path, 0, file.size)


def records_of(file: MappedFile, start: int, *, check_crc: bool) -> Iterator[tuple[int, record.RecordFields]]:
    """Yield (physical offset, fields) of a file's records from `start` on, up to the first that is not valid."""
    view = file.view
    position = start
    while position + record.BLANK.size <= file.size:
        try:
            fields = record.split_record(view, position)
        except RecordError:
            return
        if fields.physical_offset != file.base + position:
            return  # a stale record of the file's former life
        if check_crc and not _crc_matches(view, fields):
            return
        yield file.base + position, fields
        position += fields.size_bytes


def ends_with_blank(file: MappedFile, end: int) -> bool:
    """Return whether the file's records end there as they should: with a blank record, or with the file."""
    start = end - file.base
    if start + record.BLANK.size > file.size:
        return start == file.size
    size, magic = record.BLANK.unpack_from(file.view, start)
    return bool(magic == record.BLANK_MAGIC and size == file.size - start)


def _crc_matches(view: memoryview, fields: record.RecordFields) -> bool:
    body = view[fields.body_position : fields.body_position + fields.body_bytes]
    return record.body_crc(body) == fields.body_crc


def _records_behind(file: MappedFile, position: int) -> int:
    """Count whole records behind a damaged one, as far as the next 64 MiB show them."""
    magic = record.MESSAGE_MAGIC.to_bytes(4, "big", signed=True)
    window = bytes(file.view[position : position + LOOK_BEHIND_BYTES])
    at = window.find(magic, 8)
    while at >= 0:
        found = sum(1 for _ in records_of(file, position + at - 4, check_crc=True))
        if found:
            return found
        at = window.find(magic, at + 1)
    return 0


def find_end(
    log: CommitLog,
    start: int,
    *,
    check_crc: bool,
    on_record: OnRecord | None = None,
    on_plain: OnPlainRecords | None = None,
    progress: Progress | None = None,
) -> int:
    """Read records from `start` on; return where the valid ones end. on_plain: asked first, see scan_file."""
    end = start
    file = log.queue.find(start)
    while file is not None:
        end = file.base + scan_file(
            file, end - file.base, check_crc=check_crc, on_record=on_record, on_plain=on_plain, progress=progress
        )
        following = log.queue.find(file.end)
        if not ends_with_blank(file, end) or following is None:
            break
        end = file.end
        file = following
    return end
